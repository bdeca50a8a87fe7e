"""What stands in the line people type into, by the newest screen."""

from typing import Literal

from agent_relay.domain.rules import InputLine, Rules
from agent_relay.logic.detector.records import compile_pattern, squeeze
from agent_relay.logic.screen import Screen

InputState = Literal["empty", "typed", "hidden"]


def read_input(rules: Rules, screen: Screen) -> InputState:
    """Return whether the line people type into is empty or half typed; `hidden` where it is not shown."""
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
