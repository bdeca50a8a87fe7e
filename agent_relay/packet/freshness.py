"""List what changed since a packet was written or a check was run, and measure how faithful a packet is.

Changes to the tree and the conversation are reported as sentences. The measures are the planted facts that
a text keeps, the planted secrets it leaks, and its size.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from agent_relay.domain.documents.handwritten import Strict
from agent_relay.domain.documents.packet import Provenance, ResumePacket, TouchedFile, ValidationRun
from agent_relay.domain.facts import Facts, FileChange, Message
from agent_relay.domain.values import Tree, TreeFile, render_path
from agent_relay.packet._merge import Places, is_own
from agent_relay.packet.extract.provenance import find_record
from agent_relay.packet.extract.sentences import plain_apostrophes
from agent_relay.packet.handoff_facts import JOURNAL

_NAMED = 5
_SHORT = 12
# A check may go on writing reports and caches for a moment after its result is recorded.
_WRITING = timedelta(seconds=2)


def verify_freshness(packet: ResumePacket, tree: Tree) -> tuple[str, ...]:
    """List what differs from the packet by now; empty if nothing changed or nothing can be compared.

    The files that `list_touched` returns must have been looked up in the tree.
    """
    then = packet.git
    is_seen = then is not None and bool(then.head or then.fingerprint)
    if not tree.is_whole:
        return (f"cannot tell whether the tree changed: {tree.note}",) if is_seen else ()
    if then is None or not tree.is_git:
        return ("the tree is no longer a git work tree",) if then is not None and then.head else ()
    found: list[str] = []  # where nothing was seen, a file from elsewhere named a repository, no more
    is_moved = is_seen and then.head != tree.head
    if is_moved:
        found.append(f"HEAD was {_name(then.head)}, now it is {_name(tree.head)}")
    if (is_seen or then.branch) and then.branch != tree.branch:
        found.append(f"the branch was {then.branch or '(detached)'}, now it is {tree.branch or '(detached)'}")
    if not then.fingerprint or then.fingerprint == tree.fingerprint:
        return tuple(found)
    clean = _list_cleaned(packet.touched_files, tree)
    changed = [path for path in _list_changed(packet.touched_files, tree.files) if path not in clean]
    if changed:
        found.append(f"{_count_files(changed)} changed since: {_render_names(changed)}")
    if clean:
        found.append(f"{_count_files(clean)} listed as changed, now as in HEAD: {_render_names(clean)}")
    is_hidden = not found
    if is_hidden:
        found.append("files that were already modified have been modified again")
    # A file that was committed still has the same contents; one that was restored without a commit has not.
    differing = len(changed) + (0 if is_moved else len(clean))
    if differing or is_hidden:
        found += _list_voided(packet.validation_runs, differing)
    return tuple(found)


def _list_voided(runs: Sequence[ValidationRun], changed: int) -> list[str]:
    """Say of the last check of each kind that passed how many files changed after it."""
    last = {run.kind: run for run in runs}
    voided = [run for run in last.values() if run.verdict == "passed"]
    after = "those files" if not changed else "1 file" if changed == 1 else f"{changed} files"
    return [f"`{run.command}` passed before {after} changed" for run in voided]


def list_touched(
    root: str, before: ResumePacket | None, facts: Facts | None = None, *, prefix: str = ""
) -> tuple[str, ...]:
    """List the absolute paths of files that a packet lists as changed or that an agent changed since.

    `root` is the folder the packet's paths are relative to, `prefix` the agent's own folder below it.
    """
    told = before.touched_files if before is not None else ()
    paths = [file.path for file in told if file.status != "read"]
    if facts is not None:
        places = Places(root=root, cwd=facts.cwd, prefix=prefix)
        paths += [places.shorten(change.path) for change in facts.files if change.action != "read"]
    return tuple(dict.fromkeys(posixpath.join(root, path) for path in paths))


def count_changes(
    runs: Iterable[ValidationRun], facts: Facts, tree: Tree | None, *, before: ResumePacket, places: Places
) -> tuple[ValidationRun, ...]:
    """Return the runs, each with how many files changed after it.

    Counted are this leg's edits, those of earlier legs according to the packet `before`, and changed files
    that were written later, where the tree knows when. Files outside the root are ignored.
    """
    files = tree.files if tree is not None else ()
    counted = []
    for run in runs:
        is_carried = run in before.validation_runs
        changed = {
            places.shorten(change.path)
            for change in facts.files
            if change.action != "read" and (is_carried or _is_after(change, run))
        }
        if is_carried:
            changed |= _list_edited(before.touched_files, run.at)
            changed |= _list_put_back(before, tree)
        if run.at is not None:
            after = run.at + _WRITING
            changed |= {
                render_path(file.path) for file in files if file.changed_at and file.changed_at > after
            }
        inside = [path for path in changed if not posixpath.isabs(path) and not is_own(path)]
        count = max(len(inside), (run.changed_since or 0) if is_carried else 0)
        counted.append(run.model_copy(update={"changed_since": count or None}))
    return tuple(counted)


def _is_after(change: FileChange, run: ValidationRun) -> bool:
    """Check whether the record has the change after the run; entries of one message count as simultaneous."""
    if change.at and run.at and change.at != run.at:
        return change.at > run.at
    source = run.source or Provenance(agent="")
    return (change.turn, _rank_place(change.place)) > (source.turn or 0, _rank_place(source.transcript))


def _rank_place(place: str) -> tuple[int, str]:
    """Return a sort key for a place in a transcript: its line, or its message's id, which sorts by time."""
    line = place.rpartition(":")[2]
    return (int(line), "") if line.isascii() and line.isdigit() else (0, place)


def _list_edited(files: Iterable[TouchedFile], since: datetime | None) -> set[str]:
    """List the files that an agent last changed after `since`."""
    dated = [(file.path, file.source.at) for file in files if file.source and file.status != "read"]
    return {path for path, at in dated if since is not None and at is not None and at > since}


def _list_put_back(before: ResumePacket, tree: Tree | None) -> set[str]:
    """List the files that were changed when the packet was written and now match the same HEAD."""
    if tree is None or before.git is None or before.git.head != tree.head:
        return set()
    return set(_list_cleaned(before.touched_files, tree))


def list_later(facts: Facts, agent: str, packet: ResumePacket) -> tuple[str, ...]:
    """List what `agent` was asked after the packet was written.

    The order of its record decides, not the clock, which may have been set since: later are the turns after
    the newest that the packet quotes. Where it quotes none of that record, the times do. The unanswered
    prompt is quoted in full, and may be several prompts in one text.
    """
    newest = _find_newest_turn(packet, facts.transcript)

    def is_later(said: Message) -> bool:
        if newest:
            return said.turn > newest
        return said.at is not None and said.at > packet.created_at

    prompts = [said for said in facts.conversation if said.role == "user" and is_later(said)]
    notes: list[str] = []
    if prompts:
        which = "prompt was" if len(prompts) == 1 else "prompts were"
        notes.append(f"{len(prompts)} more {which} given to {agent}, whose work on it is not included")
    waiting = facts.unprocessed_prompt
    if waiting is not None and is_later(waiting):
        notes.append(f"the user sent this last and got no answer: {waiting.text}")
    return tuple(notes)


def _find_newest_turn(packet: ResumePacket, transcript: str) -> int:
    """Return the newest turn of the record that the packet quotes; 0 if it quotes none.

    A prompt that waited may have been known from relay's journal before the record had it.
    """
    sources = [one.source for one in packet.recent_turns]
    sources += [one.source for one in packet.exchanges]
    sources += [one.source for one in packet.constraints]
    places = {(find_record(source.transcript), source.turn or 0) for source in sources if source}
    prompt = packet.unprocessed_prompt
    waiting = prompt.source if prompt is not None else None
    if waiting is not None:
        record = find_record(waiting.transcript)
        places.add((transcript if record == JOURNAL else record, waiting.turn or 0))
    return max((turn for record, turn in places if transcript and record == transcript), default=0)


def _name(head: str | None) -> str:
    return head[:_SHORT] if head else "nothing (no commits)"


def _count_files(paths: Sequence[str]) -> str:
    return "1 file" if len(paths) == 1 else f"{len(paths)} files"


def _render_names(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_NAMED]) + (", …" if len(paths) > _NAMED else "")


def _list_cleaned(then: Iterable[TouchedFile], tree: Tree) -> list[str]:
    """List the files that were changed then and match HEAD now."""
    clean = set(map(render_path, tree.clean))
    return sorted(file.path for file in then if file.status != "read" and file.path in clean)


def _list_changed(then: tuple[TouchedFile, ...], now: tuple[TreeFile, ...]) -> list[str]:
    """List the paths whose entry differs.

    Files only read are not compared, nor those without anything to compare.
    """
    before = {file.path: file for file in then if file.status != "read"}
    after = {render_path(file.path): file for file in now}
    gone = [path for path, file in before.items() if path not in after and file.status != "deleted"]
    differ = [path for path, file in after.items() if path not in before or _differs(before[path], file)]
    return sorted({*gone, *differ})


def _differs(then: TouchedFile, now: TreeFile) -> bool:
    """Check whether the line counts differ; a side that was not counted matches anything."""
    pairs = ((then.added, now.added), (then.removed, now.removed))
    return any(one is not None and other is not None and one != other for one, other in pairs)


FactKind = Literal[
    "constraint",
    "decision",
    "rejected",
    "correction",
    "todo_done",
    "todo_open",
    "error",
    "prompt",
]


class PlantedFact(Strict, frozen=True):
    """One fact. A packet that keeps it holds every text of `says`, however lines are broken.

    If `beside` is given, one of its texts is on the same line as the first of `says`: a step of a plan is
    only kept with its status.
    """

    kind: FactKind
    says: Annotated[tuple[str, ...], Meta(min_length=1)]
    beside: tuple[str, ...] = ()


class PlantedSecret(Strict, frozen=True):
    """One secret, of which a packet may hold no part long enough to be of use.

    `text` may be given in pieces, so that no scanner takes a file of made-up secrets for a leak.
    """

    kind: str
    text: Annotated[str, Meta(min_length=1)] | Annotated[tuple[str, ...], Meta(min_length=1)]

    @property
    def whole(self) -> str:
        """The secret in one piece."""
        return self.text if isinstance(self.text, str) else "".join(self.text)


class Planting(Strict, frozen=True, forbid_unknown_fields=False, kw_only=True):
    """A file of planted facts. `transcript` is relative to it; other tables are its author's own."""

    agent: str = ""
    transcript: str = ""
    fact: Annotated[tuple[PlantedFact, ...], Meta(min_length=1)]
    secret: tuple[PlantedSecret, ...] = ()


KINDS: tuple[FactKind, ...] = get_args(FactKind)
# What stands before a quoted line and may fall between two words of a quotation.
_QUOTED = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)
_LEAK = 12


class Score(msgspec.Struct, frozen=True):
    """The result. `found` and `planted` count facts by kind, in the order of `KINDS`.

    Kinds without planted facts are left out. `missing` lists the facts not found, `leaked` the kinds of the
    secrets found; `characters` is the length of the text.
    """

    found: dict[FactKind, int]
    planted: dict[FactKind, int]
    missing: tuple[PlantedFact, ...]
    leaked: tuple[str, ...]
    secrets: int
    characters: int

    @property
    def kinds(self) -> int:
        """The number of kinds of which every fact was found."""
        return sum(self.found[kind] == planted for kind, planted in self.planted.items())

    @property
    def is_perfect(self) -> bool:
        """True if nothing is missing and nothing leaked."""
        return not self.missing and not self.leaked


def score_text(text: str, planting: Planting) -> Score:
    """Score `text`, whoever wrote it: only the planted words are looked for in it."""
    flat = _flatten(text)
    lines = [_flatten(line) for line in text.split("\n")]
    missing = tuple(fact for fact in planting.fact if not _holds(flat, lines, fact))
    planted = {kind: count for kind in KINDS if (count := sum(fact.kind == kind for fact in planting.fact))}
    lost = [fact.kind for fact in missing]
    return Score(
        found={kind: count - lost.count(kind) for kind, count in planted.items()},
        planted=planted,
        missing=missing,
        leaked=tuple(secret.kind for secret in planting.secret if _leaks(text, secret.whole)),
        secrets=len(planting.secret),
        characters=len(text),
    )


def _flatten(text: str) -> str:
    """Return `text` on one line, without marks of quotation, so that a broken line hides no fact."""
    return " ".join(plain_apostrophes(_QUOTED.sub("", text)).casefold().split())


def _holds(flat: str, lines: list[str], fact: PlantedFact) -> bool:
    if not all(_flatten(says) in flat for says in fact.says):
        return False
    if not fact.beside:
        return True
    first = _flatten(fact.says[0])
    return any(first in line and any(_flatten(mark) in line for mark in fact.beside) for line in lines)


def _leaks(text: str, secret: str) -> bool:
    """Check whether `text` contains twelve characters of `secret` in a row, or all of a shorter one."""
    length = min(_LEAK, len(secret))
    return any(secret[at : at + length] in text for at in range(len(secret) - length + 1))
