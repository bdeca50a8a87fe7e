"""Show a packet to people: its contents, where each line comes from, and what was left out.

Every line is short and free of escape sequences, whatever the packet holds. Positions in transcripts are
written as a letter for the file and a line, `A:120`; the files are listed once, at the end.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from string import ascii_uppercase

from agent_relay.domain.documents.packet import (
    Exchange,
    Provenance,
    Quote,
    Reason,
    ResumePacket,
    TouchedFile,
    ValidationRun,
)
from agent_relay.domain.moments import render_age, render_day, render_moment
from agent_relay.domain.text.names import name_limit
from agent_relay.domain.text.plain import clean_text, count_columns, render_count, split_columns
from agent_relay.packet.budget import CUT_NAMES, estimate_tokens
from agent_relay.packet.extract.provenance import find_record, get_turn
from agent_relay.packet.repeats import leave_out_repeated

_MOST_READ = 2000
"""Characters of a text that are looked at: more would never fit on two lines."""
_LEAST_WIDTH, _MOST_WIDTH = 30, 120
_MOST_LINES, _MOST_ENTRIES, _LONGEST_PLACE, _LONGEST_BRANCH, _LONGEST_WORD = 4, 25, 24, 50, 24
_MARKS = {"completed": "[x]", "in_progress": "[~]", "cancelled": "[-]"}
_INDENT = "  "


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry of a section: its text on a few lines, the source of that, and details below it."""

    text: str
    source: Provenance | None = None
    more: str = ""
    lines: int = 1


@dataclass(slots=True)
class _Places:
    """The letters for the files that entries come from, in the order they are first mentioned."""

    letters: dict[str, str] = field(default_factory=dict)

    def name(self, source: Provenance | None) -> str:
        """Return `(claude, turn 4, A:120)`, as far as it is known; empty if nothing is."""
        if source is None:
            return ""
        place = _flatten(source.transcript)
        turn = f"turn {source.turn}" if source.turn is not None else ""
        parts = [part for part in (shorten(source.agent, _LONGEST_PLACE), turn, self._shorten(place)) if part]
        return f"({', '.join(parts)})" if parts else ""

    def _shorten(self, place: str) -> str:
        if not place:
            return ""
        file = find_record(place)
        letter = self.letters.setdefault(file, _count_in_letters(len(self.letters)))
        return letter + _cut(place.removeprefix(file), _LONGEST_PLACE)


def render_head(packet: ResumePacket, *, text: str, is_picked_up: bool | None, now: datetime) -> list[str]:
    """Return who hands over to whom, why, when, and how long the `text` is that the target reads.

    `is_picked_up` is `None` if it is unknown. `now` is aware.
    """
    at = packet.created_at if packet.created_at.tzinfo else packet.created_at.replace(tzinfo=UTC)
    state = {True: ", picked up", False: ", not picked up yet", None: ""}[is_picked_up]
    agents = f"{_flatten(packet.previous_agent)} → {_flatten(packet.target_agent)}"
    size = f"{render_count(len(text), 'character')}, about {render_count(estimate_tokens(text), 'token')}"
    return [
        f"Packet {packet.sequence}: {agents}  {_flatten(packet.packet_id)}",
        shorten(_describe_reason(packet, now), _MOST_WIDTH),
        f"Written {render_day(at, now, None)}, {render_age(at, now)} ago{state}",
        f"{_flatten(packet.target_agent)} reads {size}",
    ]


def _describe_reason(packet: ResumePacket, now: datetime) -> str:
    agent, limit = packet.previous_agent, packet.limit
    if packet.budget:
        return f"The user's budget was spent: {packet.budget}"
    if packet.checkpoint_reason is Reason.RATE_LIMIT:
        named = name_limit(limit.scope, text=limit.evidence) if limit else "a limit"
        resets = limit.resets_at if limit else None
        when = f" (resets {render_moment(resets, now, None)})" if resets and resets.tzinfo else ""
        return f"{agent} hit {named}{when}"
    return {
        Reason.CONTEXT: f"{agent}'s context filled up",
        Reason.FAILURE: f"{agent} failed",
        Reason.COMMAND: f"{agent}'s turn had ended",
    }.get(packet.checkpoint_reason, f"The user handed the session over from {agent}")


def render_sections(packet: ResumePacket, *, width: int, changes: Sequence[str] = ()) -> list[str]:
    """Return the lines that show the contents of `packet`, and where each entry comes from.

    Like the packet's text, they say nothing twice. `width` is in columns; `changes` are sentences on what
    changed since.
    """
    width = min(max(width, _LEAST_WIDTH), _MOST_WIDTH)
    told, places = leave_out_repeated(packet), _Places()
    lines: list[str] = []
    for title, field_name, entries in _list_sections(told):
        if not entries:
            continue
        lines += ["", *wrap_line(_render_title(title, field_name, len(entries), packet), width)]
        for entry in entries[:_MOST_ENTRIES]:
            lines += _render_entry(entry, places, width)
        if len(entries) > _MOST_ENTRIES:
            lines.append(f"{_INDENT}… and {len(entries) - _MOST_ENTRIES} more")
    lines += _list_cuts(packet, places)
    if changes:
        lines += ["", "Changed since it was written"]
        lines += [
            _INDENT + line for one in changes for line in wrap_line(_flatten(one), width - len(_INDENT))
        ]
    if places.letters:
        lines += ["", "Sources"]
        lines += [f"{_INDENT}{letter}  {file}" for file, letter in places.letters.items()]
    return lines


def wrap_line(line: str, width: int) -> list[str]:
    """Return `line` on a few lines of `width` columns, whole if it fits; later ones are indented."""
    lines = _wrap(line, max(width, _LEAST_WIDTH), _MOST_LINES)
    return [_INDENT * bool(at) + one for at, one in enumerate(lines)]


def shorten(text: str, most: int) -> str:
    """Return `text` on one line of at most `most` columns, without escape sequences; `…` marks a cut."""
    return _cut(_flatten(text), most)


def _render_title(title: str, field_name: str, count: int, packet: ResumePacket) -> str:
    """Return a section's title with the number of its entries, and how many there were before cuts."""
    if not field_name:
        return title
    gone = sum(
        cut.omitted
        for cut in packet.cuts
        if cut.section.partition(" ")[0] == field_name and not cut.section.endswith(" text")
    )
    return f"{title} ({count} of {count + gone})" if gone else f"{title} ({count})"


def _list_cuts(packet: ResumePacket, places: _Places) -> Iterator[str]:
    if not packet.cuts:
        return
    yield ""
    yield "Left out to save space"
    for cut in packet.cuts:
        name = CUT_NAMES.get(cut.section) or shorten(cut.section, _LONGEST_PLACE)
        source = places.name(Provenance(agent="", transcript=find_record(cut.path)))
        yield f"{_INDENT}{cut.omitted:,} {name} {source}".rstrip()


def _list_sections(packet: ResumePacket) -> Iterator[tuple[str, str, list[_Entry]]]:
    """Yield title, field and entries of each section; the field is empty if the section is a single text."""
    yield "Task", "", _list_task(packet)
    yield "Focus", "", _list_text(packet.focus)
    prompt = packet.unprocessed_prompt
    is_task = prompt is not None and prompt.text == packet.task
    waiting = (
        _Entry("the task, word for word" if is_task else prompt.text, prompt.source, lines=2)
        if prompt
        else None
    )
    yield "Waiting prompt", "", _with_pasted(waiting, prompt.pasted if prompt else "")
    if packet.next_task and not (prompt and packet.next_task == prompt.text):
        yield "Next step", "", _list_text(packet.next_task)
    yield (
        "Rules and corrections of the user",
        "constraints",
        [_Entry(one.text, one.source, _render_ending(one), lines=2) for one in packet.constraints],
    )
    yield f"In {_flatten(_find_author(packet))}'s own words", "", _list_document(packet)
    yield (
        _count_settled(packet),
        "exchanges",
        [_describe_exchange(one, _label_silent(one, packet)) for one in packet.exchanges],
    )
    yield (
        "Decisions",
        "decisions",
        [_Entry(one.summary, one.source, f"why: {one.why}" if one.why else "") for one in packet.decisions],
    )
    yield "Blockers", "blockers", [_Entry(one.summary, one.source, one.evidence) for one in packet.blockers]
    yield "Tried", "attempts", [_Entry(one.summary, one.source, one.outcome) for one in packet.attempts]
    yield "Also said", "remarks", [_Entry(one.text, one.source) for one in packet.remarks]
    yield _title_files(packet), "touched_files", _list_files(packet.touched_files)
    yield "Checks", "validation_runs", [_describe_run(run) for run in packet.validation_runs]
    yield (
        "Plan",
        "plan",
        [_Entry(f"{_MARKS.get(one.status, '[ ]')} {one.text}", one.source) for one in packet.plan],
    )
    yield from _list_rest(packet)


def _list_rest(packet: ResumePacket) -> Iterator[tuple[str, str, list[_Entry]]]:
    """Yield the sections that few packets have, and the latest exchange."""
    running = [_Entry(f"{one.kind}: {one.text}", one.source) for one in packet.background]
    yield "Still running when it stopped", "background", running
    yield "Expected of the successor", "", _list_terms(packet.expectations)
    yield "If it fails", "", _list_terms(packet.rollback)
    yield "The end of the record, not understood", "", _list_size(packet.last_lines)
    yield "What was on the screen", "", _list_size(packet.last_screen)
    latest = [_Entry(f"{one.role}: {one.text}", one.source) for one in packet.recent_turns]
    yield "The latest exchange", "recent_turns", latest


def _list_task(packet: ResumePacket) -> list[_Entry]:
    if not packet.task:
        return [_Entry("not known")]
    return _with_pasted(_Entry(packet.task, packet.task_source, lines=2), packet.task_pasted or "")


def _with_pasted(entry: _Entry | None, pasted: str) -> list[_Entry]:
    """Return the entry, with a line for what was pasted with it, which may be all there is."""
    if entry is None:
        return []
    if not pasted:
        return [entry]
    size = render_count(len(pasted), "character")
    pasted_line = f"pasted with it, and written by others ({size}): {pasted[:_MOST_READ]}"
    return [replace(entry, more=pasted_line)]


def _list_text(text: str | None) -> list[_Entry]:
    return [_Entry(text, lines=2)] if text else []


def _list_size(text: str | None) -> list[_Entry]:
    return [_Entry(f"{render_count(len(text), 'character')}: {text[:_MOST_READ]}")] if text else []


def _list_terms(terms: dict[str, object] | None) -> list[_Entry]:
    found: list[_Entry] = []
    for name, value in (terms or {}).items():
        values = value if isinstance(value, list) else [value]
        found.append(_Entry(f"{name}: {', '.join(str(one)[:_MOST_READ] for one in values[:_MOST_ENTRIES])}"))
    return found


def _find_author(packet: ResumePacket) -> str:
    return (packet.narrative_source.agent if packet.narrative_source else "") or packet.previous_agent


def _list_document(packet: ResumePacket) -> list[_Entry]:
    """Return the size of the agent's own document, and its headings, or how it begins."""
    text = packet.narrative
    if not text:
        return []
    lines = [line for line in text.split("\n") if line.strip()]
    headings = [line.lstrip("# ") for line in lines if line.startswith("#")]
    about = " · ".join(headings[:_MOST_ENTRIES]) if headings else "".join(lines[:1])
    return [_Entry(render_count(len(text), "character"), packet.narrative_source, about)]


def _count_settled(packet: ResumePacket) -> str:
    settled = sum(one.is_settled for one in packet.exchanges)
    return f"Said and done, {settled} settled by the user" if settled else "Said and done"


def _label_silent(one: Exchange, packet: ResumePacket) -> str:
    """Return a label for an exchange without the user's words: they appear elsewhere, or nobody spoke."""
    turn, prompt = get_turn(one.source), packet.unprocessed_prompt
    if turn and prompt and get_turn(prompt.source) == turn:
        return "the waiting prompt"
    if turn and get_turn(packet.task_source) == turn:
        return "the task"
    return f"{one.source.agent if one.source else packet.previous_agent} at work"


def _describe_exchange(one: Exchange, where: str) -> _Entry:
    turn = one.source.turn if one.source else None
    marks = ["settled"] if one.is_settled else []
    if one.took_back is not None:
        marks.append(f"took back the edit of turn {one.took_back}")
    if one.ended_in is not None:
        how = one.ended_how or "taken back"
        what = how if how == "corrected" else f"edit {how}"
        # A turn of another agent may have the same number: each conversation counts from 1.
        is_undone = how == "taken back" and one.ended_in == turn
        marks.append(f"{what} in the same turn" if is_undone else f"{what} in turn {one.ended_in}")
    if one.is_broken_off:
        marks.append("interrupted before any answer")
    said = f"“{_flatten(one.said)}”" if one.said else where
    text = f"{', '.join(marks)}: {said}" if marks else said
    return _Entry(text, one.source, _render_outcome(one))


def _render_outcome(one: Exchange) -> str:
    """Return what the record shows of an exchange, the most informative first."""
    parts = (
        ("later", one.ended_by or one.revisited_by),
        ("pasted by the user, written by others", one.pasted),
        ("failed", one.failed),
        ("measured", one.measured),
        ("in answer to", one.on),
        (_flatten(one.source.agent) if one.source else "told", one.told),
    )
    return " · ".join(f"{name}: {_flatten(text)}" for name, text in parts if text)


def _render_ending(one: Quote) -> str:
    if one.ended_in is None:
        return f"see turn {one.revisited_in}: {one.revisited_by}" if one.revisited_in is not None else ""
    when = f"{one.ended_how or 'taken back'} in turn {one.ended_in}"
    return f"{when}: {one.ended_by}" if one.ended_by else when


def _title_files(packet: ResumePacket) -> str:
    git = packet.git
    if git is None:
        return "Files"
    parts = [f"branch {shorten(git.branch, _LONGEST_BRANCH)}" if git.branch else ""]
    parts.append(f"HEAD {shorten(git.head[:12], 12)}" if git.head else "")
    named = ", ".join(part for part in parts if part)
    return f"Files, by git at {named}" if named else "Files"


def _list_files(files: Iterable[TouchedFile]) -> list[_Entry]:
    changed: list[_Entry] = []
    read: list[str] = []
    for one in files:
        if one.status == "read":
            read.append(one.path)
            continue
        counts = ""
        if one.added is not None or one.removed is not None:
            counts = f" (+{one.added or 0} -{one.removed or 0})"
        before = f"{one.previous_path} → " if one.previous_path else ""
        changed.append(_Entry(f"{one.status} {before}{one.path}{counts}", one.source))
    if read:
        changed.append(_Entry(f"only read: {', '.join(read)}"))
    return changed


def _describe_run(run: ValidationRun) -> _Entry:
    said = "" if run.exit_code is None else f" (exit {run.exit_code})"
    text = f"{run.kind} {run.verdict or 'ran'}{said}: {run.command}"
    changed = render_count(run.changed_since, "file") if run.changed_since else ""
    return _Entry(text, run.source, f"{changed} changed after it" if changed else "")


def _render_entry(entry: _Entry, places: _Places, width: int) -> list[str]:
    """Return the lines of an entry: its text, its source where there is room, and its details."""
    room, source = width - len(_INDENT), places.name(entry.source)
    lines, more = _wrap(_flatten(entry.text), room, entry.lines), _flatten(entry.more)
    if source and count_columns(lines[-1]) + len(_INDENT) + count_columns(source) <= room - len(_INDENT):
        lines[-1] += _INDENT + source
    else:
        more = f"{source} {more}".strip()
    shown = [*lines, *([_cut(more, room - len(_INDENT))] if more else [])]
    return [_INDENT * (2 if at else 1) + line for at, line in enumerate(shown)]


def _wrap(text: str, room: int, most: int) -> list[str]:
    """Return `text` in at most `most` lines, broken at blanks if there are any; later ones are narrower."""
    lines: list[str] = []
    while len(lines) < most - 1 and count_columns(text) > room:
        piece = split_columns(text, room)[0]
        if " " in piece.strip():
            piece = piece[: piece.rstrip().rfind(" ") + 1]
        lines.append(piece.rstrip())
        text = text[len(piece) :].lstrip()
        room -= 0 if len(lines) > 1 else len(_INDENT)
    return [*lines, _cut(text, room)]


def _cut(text: str, most: int) -> str:
    if count_columns(text) <= most:
        return text
    kept, rest = split_columns(text, most - 1)[:2]
    whole = kept if rest.startswith(" ") else kept.rpartition(" ")[0]
    return f"{(whole if len(kept) - len(whole) <= _LONGEST_WORD else kept).rstrip()}…"


def _flatten(text: str) -> str:
    return " ".join(clean_text(text[:_MOST_READ]).split())


def _count_in_letters(number: int) -> str:
    """Return A to Z, then AA, AB and so on."""
    letters = ""
    number += 1
    while number:
        number, at = divmod(number - 1, len(ascii_uppercase))
        letters = ascii_uppercase[at] + letters
    return letters
