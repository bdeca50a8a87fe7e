"""Read from a settled screen what an agent is doing, whether its input line is empty, and its own notices."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from agent_relay.domain.documents.record_matching import compile_pattern, is_meant, squeeze
from agent_relay.domain.documents.rules import (
    Feed,
    InputLine,
    Near,
    Rules,
    ScreenPlace,
    ScreenState,
    StateRule,
)
from agent_relay.domain.screen import Screen

AgentState = ScreenState | Literal["unknown"]


def read_state(
    rules: Rules, screen: Screen, *, state_record: Mapping[str, object] | None = None, is_new: bool = False
) -> AgentState:
    """Return the state by the first rule that matches, `unknown` if none does.

    `screen` is settled and carries the window title and the state the agent announced in band;
    `state_record` is the newest record of the agent's own state file, `None` if it keeps none; `is_new`
    is whether the leg began only a moment ago.
    """
    texts = [row.text.replace("\u00a0", " ") for row in screen.rows if row.text.strip()]
    for rule in rules.states:
        if rule.announced and is_new and not screen.agent_state:
            continue
        if _matches(rule, screen, texts, state_record):
            return rule.state
    return "unknown"


def believe_state(rules: Rules, state: AgentState, *, had_turns: bool) -> AgentState:
    """Return `starting` for an agent busy before its first turn, say with its tool servers; else `state`.

    `had_turns` is whether the leg waited for a prompt before, or was seen to take one. An agent whose
    records contain no prompts is believed.
    """
    hears_prompts = any(sign.means == "prompt" for sign in rules.progress)
    return "starting" if state == "busy" and hears_prompts and not had_turns else state


def match_state(rule: StateRule, text: str) -> bool:
    """Return whether one row, title or announced state shows this rule's sign."""
    if not rule.pattern or compile_pattern(rule.pattern).search(text) is None:
        return False
    return not rule.unless or compile_pattern(rule.unless).search(text) is None


def _matches(rule: StateRule, screen: Screen, texts: list[str], record: Mapping[str, object] | None) -> bool:
    match rule.source:
        case "title":
            return match_state(rule, screen.title)
        case "terminal":
            return match_state(rule, screen.agent_state)
        case "state-file":
            return record is not None and is_meant(rule.where, record)
        case _:
            return _is_shown(rule, texts)


def _is_shown(rule: StateRule, texts: list[str]) -> bool:
    rows = texts[-rule.rows :] if rule.rows else texts
    if rule.unless and any(compile_pattern(rule.unless).search(text) for text in rows):
        return False
    pattern = compile_pattern(rule.pattern)
    return any(pattern.search(text) for text in rows)


InputState = Literal["empty", "typed", "hidden"]


def read_input(rules: Rules, screen: Screen) -> InputState:
    """Return whether the line people type into is empty or half typed; `hidden` if it is not shown."""
    line = rules.input
    if line is None:
        return "hidden"
    rows = _find_input(line, [row.text.replace("\u00a0", " ") for row in screen.rows])
    if not rows:
        return "hidden"
    typed = any(
        text and not _is_hint(line, text) and screen.rows[row].color not in line.hint_colours
        for row, text in rows
    )
    return "typed" if typed else "empty"


def _find_input(line: InputLine, texts: list[str]) -> list[tuple[int, str]]:
    pattern = compile_pattern(line.row)
    if not line.anchor:
        last = next((row for row in reversed(range(len(texts))) if pattern.search(texts[row])), None)
        return [] if last is None else [(last, _typed(line, texts[last]))]
    anchor = compile_pattern(line.anchor)
    below = next((row for row in reversed(range(len(texts))) if anchor.search(texts[row])), None)
    found: list[tuple[int, str]] = []
    if below is None:
        return found
    for row in range(below - 1, max(-1, below - 1 - line.rows), -1):
        if not pattern.search(texts[row]):
            break
        found.append((row, _typed(line, texts[row])))
    return found


def _typed(line: InputLine, text: str) -> str:
    match = compile_pattern(line.row).search(text)
    return squeeze(match["typed"] or "") if match is not None else ""


def _is_hint(line: InputLine, text: str) -> bool:
    return bool(line.hint) and compile_pattern(line.hint).fullmatch(text) is not None


class Notice(msgspec.Struct, frozen=True):
    """Words at a notice's position: the feed they belong to, wrapped rows joined, and their first row."""

    feed: str
    text: str
    row: int


def find_notices(feeds: Sequence[Feed], screen: Screen) -> tuple[Notice, ...]:
    """Return every notice of the screen feeds, from the top row down."""
    texts = [row.text.replace("\u00a0", " ") for row in screen.rows]
    colours = [row.color for row in screen.rows]
    found = [
        Notice(feed.name, text, row)
        for feed in feeds
        if feed.place is not None
        for row, text in _find_at(feed.place, texts, colours)
    ]
    return tuple(sorted(found, key=lambda notice: notice.row))


def _find_at(place: ScreenPlace, texts: list[str], colours: list[str]) -> list[tuple[int, str]]:
    starts = compile_pattern(place.starts)
    found = []
    for row, text in enumerate(texts):
        match = starts.search(text)
        if match is None or not _stands_right(place, texts, row):
            continue
        if place.colour and colours[row] not in place.colour:
            continue
        found.append((row, _join(place, texts, row, match.end())))
    return found


def _clean(text: str, blanks: str) -> str:
    return text.translate({ord(character): " " for character in blanks}) if blanks else text


def _stands_right(place: ScreenPlace, texts: list[str], row: int) -> bool:
    if place.above and (row == 0 or not compile_pattern(place.above).search(texts[row - 1])):
        return False
    if place.unless_below:
        below = compile_pattern(place.unless_below)
        if any(below.search(text) for text in texts[row + 1 :]):
            return False
    if place.under is not None and not _stands_under(place.under, texts, row):
        return False
    return all(_follows(near, texts, row) for near in place.followed)


def _stands_under(near: Near, texts: list[str], row: int) -> bool:
    pattern = compile_pattern(near.pattern)
    last = next((index for index in range(len(texts) - 1, -1, -1) if pattern.search(texts[index])), None)
    return last is not None and last < row <= last + near.rows


def _follows(near: Near, texts: list[str], row: int) -> bool:
    pattern = compile_pattern(near.pattern)
    return any(pattern.search(text) for text in texts[row + 1 : row + 1 + near.rows])


def _join(place: ScreenPlace, texts: list[str], row: int, start: int) -> str:
    """Return the words after the opening at `start`, with the rows they wrapped onto."""
    stops = compile_pattern(place.stops) if place.stops else None
    parts = [squeeze(_clean(texts[row], place.blanks)[start:])]
    for text in texts[row + 1 : row + place.join]:
        clean = squeeze(_clean(text, place.blanks))
        if not clean or (stops is not None and stops.search(text)):
            break
        parts.append(clean)
    return " ".join(part for part in parts if part)
