"""Build searchable turns from facts: a prompt, what it answers, all that followed, and the user's reaction.

Texts are as the transcript has them. `render_turn` renders a whole turn, cleaned by a function of the caller.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Literal

import msgspec

from agent_relay.domain.facts import CommandRun, Facts, FileChange, ToolError, group_by_turn
from agent_relay.domain.text.plain import compile_late
from agent_relay.domain.values import replace
from agent_relay.packet.extract.pastes.split import split_pasted
from agent_relay.packet.extract.restated import prints_relay

EntryKind = Literal[
    "before",
    "prompt",
    "pasted",
    "answer",
    "command",
    "error",
    "edit",
    "plan",
    "summary",
    "note",
    "quoted",
    "after",
]
LABELS: dict[EntryKind, str] = {
    "prompt": "user: ",
    "answer": "agent: ",
    "before": "(before this, agent: ",
    "after": "(after this, user: ",
}
"""Labels for entries whose head does not say who is speaking."""
PASTED = "pasted by the user, written by others:"
"""The head of what a prompt holds besides the user's own words; each line below it begins with `> `."""
GAP = "…"
"""Marks an omission."""

_OUTPUT_HEAD, _OUTPUT_TAIL = 1000, 3000
_LONGEST_REACTION = 200
_LONGEST_REACTED = 400
_SHORT_PROMPT = 240
_LINE_NUMBER = compile_late(r":(\d+)$")


class PastEntry(msgspec.Struct, frozen=True):
    """One thing that was said, run, changed or planned in a turn; `head` is a line that describes it."""

    kind: EntryKind
    text: str
    head: str = ""

    @property
    def shown(self) -> str:
        """The text to excerpt: the end of a preceding answer, the beginning of a following prompt."""
        if self.kind == "before" and len(self.text) > _LONGEST_REACTED:
            return f"{GAP}{self.text[-_LONGEST_REACTED:]}"
        if self.kind == "after" and len(self.text) > _LONGEST_REACTION:
            return f"{self.text[:_LONGEST_REACTION]}{GAP}"
        return self.text

    @property
    def whole(self) -> str:
        """The head and the text to show."""
        return f"{self.head}\n{self.shown}" if self.head and self.shown else self.head or self.shown


class PastTurn(msgspec.Struct, frozen=True):
    """One turn of one leg: `leg` counts the session's legs from 1, `number` the conversation's prompts.

    Number 0 is what precedes the first prompt, such as the summary of an earlier conversation.
    """

    leg: int
    agent: str
    number: int
    at: datetime | None
    entries: tuple[PastEntry, ...]


def build_turns(facts: Facts, *, leg: int) -> list[PastTurn]:
    """Build the turns of one leg, in order, from its facts, which should not be trimmed."""
    entries: dict[int, list[tuple[tuple[float, int], PastEntry]]] = {}
    began: dict[int, datetime | None] = {}

    def add(turn: int, entry: PastEntry, place: str, at: datetime | None) -> None:
        row = entries.setdefault(turn, [])
        row.append((_sort_key(place, at, len(row)), entry))
        began[turn] = began.get(turn) or at

    for one in group_by_turn(facts):
        if one.prompt is not None:
            add(one.number, PastEntry("prompt", one.prompt.text), one.prompt.place, one.prompt.at)
        for said in one.answers:
            add(one.number, PastEntry("answer", said.text), said.place, said.at)
        for run in one.commands:
            add(one.number, _describe_run(run), run.place, run.at)
        for change in one.files:
            add(one.number, _describe_change(change, facts.cwd), change.place, change.at)
        for error in one.errors:
            add(one.number, _describe_error(error), error.place, error.at)
    for turn in sorted({step.turn for step in facts.plan}):
        marks = (f"[{step.status}] {step.text}" for step in facts.plan if step.turn == turn)
        add(turn, PastEntry("plan", "\n".join(marks), "the plan, as it was last changed"), "", facts.ended_at)
    if facts.summary:
        add(
            0, PastEntry("summary", facts.summary, "summary of an earlier conversation"), "", facts.started_at
        )
    turns = [
        PastTurn(leg, facts.agent, number, began[number], _put_in_order(entries[number]))
        for number in sorted(entries)
    ]
    return [
        _add_neighbours(turn, before=turns[at - 1] if at else None, after=after)
        for at, (turn, after) in enumerate(zip(turns, [*turns[1:], None], strict=False))
    ]


def _add_neighbours(turn: PastTurn, *, before: PastTurn | None, after: PastTurn | None) -> PastTurn:
    """Return the turn with what its short prompt answers, and with the user's reaction to the turn.

    "2, but without the cache" means nothing without the options, nor does a proposal without the reaction.
    """
    entries = turn.entries
    asked = next((one.text for one in entries if one.kind == "prompt"), "")
    answer = (
        next((one.text for one in reversed(before.entries) if one.kind == "answer"), "") if before else ""
    )
    if answer and asked and len(asked) <= _SHORT_PROMPT:
        entries = (PastEntry("before", answer), *entries)
    reaction = next((one.text for one in after.entries if one.kind == "prompt"), "") if after else ""
    if reaction:
        entries = (*entries, PastEntry("after", reaction))
    return replace(turn, entries=entries)


def set_apart(entry: PastEntry) -> list[PastEntry]:
    """Return a prompt's entry as the user's own words and what they pasted; other entries as they are.

    It takes time, and is for entries that are shown. Of the next prompt only the user's own words are kept.
    """
    if entry.kind not in {"prompt", "after"}:
        return [entry]
    split = split_pasted(entry.text)
    if not split.pasted:
        return [entry]
    if entry.kind == "after":
        return [replace(entry, text=f"{split.own} [and what others wrote]".strip())]
    own = [replace(entry, text=split.own)] if split.own else []
    return [*own, PastEntry("pasted", "\n".join(split.pasted), PASTED)]


def quote_lines(text: str) -> str:
    """Return `text` with a mark before each line that says that others wrote it."""
    return "\n".join(f"> {line}" for line in text.split("\n"))


def add_packet(
    turns: Sequence[PastTurn], packet: Mapping[str, object], *, leg: int, agent: str
) -> list[PastTurn]:
    """Return `turns` with what a packet's document quotes from `agent`, each entry in the turn it is from.

    Use it for a leg whose own record is gone. Entries that name no turn of the agent's go to turn 0.
    """
    quoted: dict[int, list[PastEntry]] = {}
    for field, value in packet.items():
        for one in value if isinstance(value, list) else [value]:
            number, text = _read_quoted(one, agent)
            if text and field not in _NOT_QUOTED:
                head = f"{field.replace('_', ' ')}, as a packet has it:"
                quoted.setdefault(number, []).append(PastEntry("quoted", text, head))
    known = {turn.number: turn for turn in turns}
    for number, entries in quoted.items():
        turn = known.get(number, PastTurn(leg, agent, number, None, ()))
        known[number] = replace(turn, entries=(*turn.entries, *entries))
    return [known[number] for number in sorted(known)]


def _read_quoted(value: object, agent: str) -> tuple[int, str]:
    """Return turn and words of an entry of a packet's document; no words for another agent's entry."""
    if isinstance(value, str):
        return 0, value
    if not isinstance(value, dict):
        return 0, ""
    source = value.get("source")
    told = source if isinstance(source, dict) else {}
    number = told.get("turn")
    if told.get("agent", agent) != agent:
        return 0, ""
    texts = [text for key, text in value.items() if isinstance(text, str) and key != "id"]
    return number if isinstance(number, int) else 0, "\n".join(texts)


# Fields of a packet that quote nobody.
_NOT_QUOTED = frozenset(
    {
        *("schema", "packet_id", "session_id", "created_at", "previous_agent", "target_agent"),
        *(
            "checkpoint_reason",
            "resumes",
            "unread",
            "restored",
            "git",
            "usage",
            "lineage",
            "redactions",
            "spared",
            "cuts",
        ),
    }
)


def _sort_key(place: str, at: datetime | None, order: int) -> tuple[float, int]:
    """Return the sort key of an entry within its turn: the line in the transcript, else the time."""
    line = _LINE_NUMBER.search(place)
    if line is not None:
        return float(line[1]), order
    return (at.timestamp() if at is not None else math.inf), order


def _put_in_order(rows: list[tuple[tuple[float, int], PastEntry]]) -> tuple[PastEntry, ...]:
    """Return the entries in order, prompts first, all files that were only read in one entry."""
    ordered = [entry for _, entry in sorted(rows, key=lambda row: row[0])]
    prompts = [entry for entry in ordered if entry.kind == "prompt"]
    read = [entry.text for entry in ordered if entry.kind == "note"]
    others = [entry for entry in ordered if entry.kind not in {"prompt", "note"}]
    if read:
        others.append(PastEntry("note", ", ".join(dict.fromkeys(read)), "read"))
    return (*prompts, *others)


def _describe_run(run: CommandRun) -> PastEntry:
    status = "" if run.exit_code is None else f" (exit {run.exit_code})"
    kind: EntryKind = "error" if run.exit_code else "command"
    # A search would find its own earlier answers.
    output = "" if prints_relay(run.command) else run.output
    return PastEntry(kind, output.strip("\n"), f"ran{status}: {run.command}")


def _describe_change(change: FileChange, cwd: str) -> PastEntry:
    path = change.path.removeprefix(f"{cwd.rstrip('/')}/") if cwd else change.path
    if change.action == "read":
        return PastEntry("note", path)
    counts = "" if change.added is None else f" (+{change.added} -{change.removed or 0})"
    before = f" from {change.previous_path}" if change.previous_path else ""
    return PastEntry("edit", "\n".join(_list_lines(change)), f"{change.action} {path}{before}{counts}")


def _list_lines(change: FileChange) -> list[str]:
    """Return the lines the change removed and added, each with `-` or `+`."""
    return [*(f"-{line}" for line in change.removed_lines), *(f"+{line}" for line in change.added_lines)]


def _describe_error(error: ToolError) -> PastEntry:
    return PastEntry("error", error.text.strip("\n"), f"{error.tool} failed")


def _cut_output(text: str) -> str:
    """Return the beginning and end of an output; the end is longer, because errors are there."""
    if len(text) <= _OUTPUT_HEAD + _OUTPUT_TAIL:
        return text
    return f"{text[:_OUTPUT_HEAD]}\n{GAP}\n{text[-_OUTPUT_TAIL:]}"


def render_turn(turn: PastTurn, clean: Callable[[str], str]) -> str:
    """Return the whole turn as text, without the middles of long outputs; `clean` is as for excerpts."""
    shown = []
    for entry in turn.entries:
        if entry.kind in {"before", "after"}:
            continue
        # A secret is known by all of its lines: they are parted after it was taken out.
        cleaned = replace(entry, text=clean(entry.text), head=clean(entry.head))
        shown += [LABELS.get(one.kind, "") + _render_entry(one) for one in set_apart(cleaned)]
    return "\n".join(shown)


def _render_entry(entry: PastEntry) -> str:
    if entry.kind == "pasted":
        return f"{entry.head}\n{quote_lines(entry.text)}"
    text = _cut_output(entry.text) if entry.kind in {"command", "error"} else entry.text
    return replace(entry, text=text).whole
