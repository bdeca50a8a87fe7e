"""Colours of a terminal or none, and text that fits its columns."""

from typing import Literal

from agent_relay.logic.columns import count_columns
from agent_relay.logic.plain import clean_text

Style = Literal["bold", "dim", "thought", "red", "green", "yellow", "cyan"]
_CODES: dict[Style, str] = {
    "bold": "1",
    "dim": "2",
    "thought": "2;3",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


class Ink:
    """Paints text in a style; without colour it stays as it is."""

    def __init__(self, *, is_colour: bool) -> None:
        self.is_colour = is_colour

    def paint(self, style: Style, text: str) -> str:
        """`text` in that style, which ends with it."""
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if self.is_colour and text else text


def join_line(text: str) -> str:
    """`text` on one line, safe to show."""
    return " ".join(clean_text(text).split())


def cut_line(text: str, columns: int) -> str:
    """`text` in at most so many columns, an ellipsis where it was cut."""
    if count_columns(text) <= columns:
        return text
    kept, room = [], columns - 1
    for sign in text[: max(columns, 0)]:
        room -= count_columns(sign)
        if room < 0:
            break
        kept.append(sign)
    return "".join(kept) + "…" if columns > 0 else ""
