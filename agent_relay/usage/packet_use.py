"""Count a successor's use of its packet from its own record: a pure fold over facts.

Nothing is planted in the packet and nothing is asked of the agent. What a record cannot tell is `None`.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

import msgspec
from msgspec.structs import asdict

from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message, ToolError
from agent_relay.domain.values import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.domain.documents.packet import ResumePacket
    from agent_relay.domain.session import Leg

READING = frozenset({"cat", "head", "tail", "sed", "nl", "less", "more", "bat"})
"""Programs by which agents without a tool for it read files."""
_WORD = re.compile(r"[^\s'\"|;&<>()=]+")
_NAME = re.compile(r"\w{4,}")
_LIKE = 0.6
"""Share of its longer words that a question has in common with an earlier one if they are the same."""
_FEWEST = 3
"""Fewest longer words in common: with fewer, two questions may be about anything."""
_SEARCHED = 4000
"""Most characters of a command, or of an answer's end, that are looked at."""
_OWN_FOLDER = ".agent-relay"
EARLY = timedelta(seconds=2)
"""Longest time by which a native record may be dated before the journal's line about it."""
_LATE = timedelta(seconds=10)
"""Longest time that records of an agent that is being ended still count as its own."""


class PacketUse(msgspec.Struct, frozen=True):
    """A successor's use of its packet; `lacks` is why nothing of it is known, empty if it is.

    Of the files and commands that the packet named, it read and ran some again; of the questions that had
    been answered it asked some again, among all its questions. `recalls` are its searches of the record.
    `events` are what it said, read, ran and failed at before its first change of a file, `tokens` what it had
    used by then; both `None` if it changed none, or if nothing dates what it did.
    """

    lacks: str = ""
    files_named: int = 0
    files_read: int = 0
    files_read_again: int = 0
    files_changed: int = 0
    commands_named: int = 0
    commands_run: int = 0
    commands_run_again: int = 0
    questions: int = 0
    questions_again: int = 0
    recalls: int = 0
    events: int | None = None
    tokens: int | None = None
    changed_at: datetime | None = None


_Event = Message | CommandRun | FileChange | ToolError


def find_span(
    legs: "Sequence[Leg]", sharing: Iterable[int], place: int
) -> tuple[datetime | None, datetime | None]:
    """Return the span of time in which a leg's record is about that leg; `None` for no bound.

    `place` is its number among the session's `legs`, from 1, and `sharing` has those of all that continued
    its conversation. Its packet's delivery is no bound: on a busy machine that may be journalled only when
    the agent has done its work.
    """
    leg, numbers = legs[place - 1], set(sharing)
    until = leg.ended_at + _LATE if leg.ended_at is not None else None
    if not (numbers - {place} or leg.resumes):
        return None, until
    ends = (legs[number - 1].ended_at for number in numbers if number < place)
    return max([leg.starting_at - EARLY, *(end for end in ends if end is not None)]), until


def select_facts(facts: Facts, since: datetime | None, until: datetime | None) -> Facts | None:
    """Return what happened from `since` on and before `until`; `None` if its times do not tell.

    Without `since` all of the record is the successor's own, dated or not.
    """
    dated: list[_Event] = [*facts.conversation, *facts.commands, *facts.files, *facts.errors]
    if since is not None and any(one.at is None for one in dated):
        return None

    def is_inside(at: datetime | None) -> bool:
        return at is None or ((since is None or at >= since) and (until is None or at < until))

    return replace(
        facts,
        conversation=tuple(one for one in facts.conversation if is_inside(one.at)),
        commands=tuple(one for one in facts.commands if is_inside(one.at)),
        files=tuple(one for one in facts.files if is_inside(one.at)),
        errors=tuple(one for one in facts.errors if is_inside(one.at)),
    )


def fold_packet_use(packet: "ResumePacket", facts: Facts, *, root: str) -> PacketUse:
    """Return what the successor whose record `facts` is did with the packet, in the tree `root`."""
    named = {_normalise(file.path, root, root) for file in packet.touched_files if file.status != "deleted"}
    told = {_squeeze(run.command) for run in packet.validation_runs}
    told |= {_squeeze(attempt.summary) for attempt in packet.attempts}
    answered = [_find_words(_find_question(one.on)) for one in packet.exchanges if one.said]
    questions = [words for said in facts.conversation if (words := _hear_question(said)) is not None]
    read = _list_read(facts, root, named)
    changes = [change for change in facts.files if _is_useful(change, facts.cwd or root, root)]
    first = changes[0] if changes else None
    return PacketUse(
        files_named=len(named),
        files_read=len(read),
        files_read_again=len(read & named),
        files_changed=len({_normalise(change.path, facts.cwd or root, root) for change in changes}),
        commands_named=len(told),
        commands_run=len(facts.commands),
        commands_run_again=len({_squeeze(run.command) for run in facts.commands} & told),
        questions=len(questions),
        questions_again=sum(any(_is_like(words, known) for known in answered) for words in questions),
        recalls=sum(_is_recall(run.command) for run in facts.commands),
        events=_count_before(facts, first) if first is not None else None,
        changed_at=first.at if first is not None else None,
    )


def count_tokens(
    uses: PacketUse, answers: Iterable[tuple[datetime, int]], since: datetime | None
) -> PacketUse:
    """Return the use with the tokens of the dated answers up to its first change, if that is dated."""
    changed_at = uses.changed_at
    if changed_at is None:
        return uses
    used = [tokens for at, tokens in answers if (since is None or at >= since) and at <= changed_at]
    return replace(uses, tokens=sum(used)) if used else uses


def build_packet_use(use: PacketUse) -> dict[str, object]:
    """Return the use as its JSON object, with the line for people; without counts if nothing is known."""
    text = render_packet_use(use)
    if use.lacks:
        return {"lacks": use.lacks, "text": text}
    changed_at = use.changed_at.isoformat() if use.changed_at is not None else None
    return {**asdict(use), "changed_at": changed_at, "text": text}


def render_packet_use(use: PacketUse) -> str:
    """Render the use as one line for people, which says what is unknown."""
    if use.lacks:
        return f"unknown: {use.lacks}"
    parts = [
        f"{use.files_read_again} of {use.files_named} named files read again",
        f"{use.commands_run_again} of {use.commands_named} named commands run again",
        f"{use.questions_again} of {use.questions} questions asked again",
        f"recall used {use.recalls} times" if use.recalls != 1 else "recall used once",
    ]
    if use.events is None:
        return ", ".join([*parts, "no change of a file seen"])
    tokens = f"{use.tokens:,} tokens" if use.tokens is not None else "an unknown number of tokens"
    return ", ".join([*parts, f"first change after {use.events} events and {tokens}"])


def _normalise(path: str, cwd: str, root: str) -> str:
    """Return the path relative to the tree if it lies there, else absolute."""
    whole = posixpath.normpath(posixpath.join(cwd, path))
    inside = root.rstrip("/") + "/"
    return whole.removeprefix(inside) if whole.startswith(inside) else whole


def _squeeze(command: str) -> str:
    return " ".join(command[:_SEARCHED].split())


def _list_read(facts: Facts, root: str, named: set[str]) -> set[str]:
    """Return the files read with a tool, and those of the packet that a command printed."""
    cwd = facts.cwd or root
    found = {_normalise(change.path, cwd, root) for change in facts.files if change.action == "read"}
    for run in facts.commands:
        words = _WORD.findall(run.command[:_SEARCHED])
        if READING.intersection(words):
            found |= {_normalise(word, cwd, root) for word in words} & named
    return found


def _is_useful(change: FileChange, cwd: str, root: str) -> bool:
    """Tell whether the change is to a file in the tree that is not relay's own."""
    path = _normalise(change.path, cwd, root)
    return change.action != "read" and not path.startswith(("/", "../", _OWN_FOLDER))


def _is_recall(command: str) -> bool:
    words = _WORD.findall(command[:_SEARCHED])
    return any(one.rpartition("/")[2] == "agent-relay" and two == "recall" for one, two in pairwise(words))


def _hear_question(said: Message) -> frozenset[str] | None:
    """Return the longer words of the question an answer ends with; `None` if it ends with none."""
    question = _find_question(said.text) if said.role == "assistant" else ""
    return _find_words(question) if question else None


def _find_question(text: str) -> str:
    """Return the last line of a text if it is a question, else an empty text."""
    lines = [line for line in text[-_SEARCHED:].splitlines() if line.strip()]
    last = lines[-1].strip(" \t*_`\"')") if lines else ""
    return last if last.endswith(("?", "？")) else ""  # noqa: RUF001 - questions are asked in any language


def _find_words(text: str) -> frozenset[str]:
    return frozenset(_NAME.findall(text.casefold()))


def _is_like(words: frozenset[str], known: frozenset[str]) -> bool:
    common = len(words & known)
    return common >= _FEWEST and common >= _LIKE * min(len(words), len(known))


def _count_before(facts: Facts, first: FileChange) -> int | None:
    """Return how many events come before the first change, by time and else by their place in the record."""
    events: Sequence[_Event] = [
        *(said for said in facts.conversation if said.role == "assistant"),
        *facts.commands,
        *(change for change in facts.files if change is not first),
        *facts.errors,
    ]
    if first.at is not None and all(one.at is not None for one in events):
        return sum(_order(one) < _order(first) for one in events)
    lines = [_find_line(one) for one in (*events, first)]
    if all(line is not None for line in lines):
        return sum(line < lines[-1] for line in lines[:-1] if line is not None and lines[-1] is not None)
    return None


def _order(event: _Event) -> tuple[float, int]:
    return (event.at.timestamp() if event.at is not None else 0.0, _find_line(event) or 0)


def _find_line(event: _Event) -> int | None:
    line = event.place.rpartition(":")[2]
    return int(line) if line.isascii() and line.isdecimal() and len(line) <= len("999999999999") else None
