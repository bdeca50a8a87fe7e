"""A screen as JSON values, taken from an emulator, without dataclasses."""

import re
import unicodedata

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.output_scanner import AgentStateScanner

# How far a cell may lie from where its character's index says, the nearest first: terminals dispute the width
# of some emoji.
_NEARBY = (0, -1, 1, -2, 2, -3, 3, -4, 4)
_WORD = re.compile(r"[^\W_]")


def _column(emulator: Emulator, y: int, line: str, index: int) -> int:
    """Return the column of the character at `index` of row `y`."""
    before = line[:index]
    if before.isascii():
        return index
    x = index + sum(1 for sign in before if unicodedata.east_asian_width(sign) in "WF")
    x -= sum(1 for sign in before if unicodedata.combining(sign))
    last, wanted = emulator.cols - 1, ord(line[index])
    there = (x + away for away in _NEARBY if 0 <= x + away <= last)
    return next((at for at in there if emulator.codepoint(at, y) == wanted), min(max(x, 0), last))


def _describe(emulator: Emulator, y: int, line: str) -> list[object]:
    """Return the row, whether it goes on in the next one, and the color of its words.

    That is the color of its first letter or digit, past boxes and bullets; else of its first sign.
    """
    if not line:
        return ["", False, ""]
    word = _WORD.search(line)
    index = word.start() if word else len(line) - len(line.lstrip())
    color, wraps = emulator.look_at(_column(emulator, y, line, index), y)
    return [line, wraps, color]


def snapshot(
    emulator: Emulator,
    scanner: AgentStateScanner,
    *,
    scrolled: tuple[str, ...] = (),
    seen: tuple[str, ...] = (),
) -> dict[str, object]:
    """Return the screen now, as `screen.parse_screen` reads it.

    `scrolled` are the rows that scrolled away and `seen` the agent's own states since the previous snapshot.
    """
    return {
        "rows": [_describe(emulator, y, line) for y, line in enumerate(emulator.text())],
        "cols": emulator.cols,
        "title": emulator.title(),
        "cursor": list(emulator.cursor()),
        "alternate": emulator.alternate(),
        "scrolled": list(scrolled),
        "agent_state": scanner.state,
        "agent_states": list(seen),
    }
