"""Fits a line to a width: wrapped between words, or cut so that no number is shown in part."""

import re

from rich.cells import cell_len, set_cell_size
from rich.text import Text

_WORD = re.compile(r"\S+")
_LONGEST_NUMBER = 24
"""A word of more characters is no number people read: a path, a digest."""


def wrap(line: Text, width: int, *, most: int = 2**31) -> list[Text]:
    """The line's words on lines of at most `width` cells; a word that takes more has one of its own.

    Where that takes more than `most` lines the last one says so.
    """
    lines: list[Text] = []
    begin = end = 0
    for word in _WORD.finditer(line.plain):
        if cell_len(line.plain[begin : word.end()]) > width:
            # Before the first word there is nothing but what indents it.
            lines += [line[begin:end]] if end > begin else []
            begin = word.start()
        end = word.end()
    lines.append(line[begin:end])
    if len(lines) > most:
        lines = lines[:most]
        lines[-1].append(" …")
    return lines


def cut(line: Text, width: int) -> None:
    """`line` takes at most `width` cells; a number that would be cut, or end where it is cut, is left out."""
    whole = line.plain
    if cell_len(whole) <= width:
        return
    kept = set_cell_size(whole, max(0, width - 1))
    at = max(kept.rfind(" "), kept.rfind("\u00a0")) + 1
    word = _WORD.match(whole, at)
    is_number = word is not None and len(word[0]) <= _LONGEST_NUMBER and any(map(str.isdigit, word[0]))
    line.plain = f"{kept[:at] if is_number else kept}…"[: max(0, width)]
