"""The text grid an agent is showing, as a value: the input of detection."""

import msgspec

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.text.plain import count_columns


class Row(msgspec.Struct, frozen=True):
    """One row, right-trimmed.

    `wrapped` means that it continues in the next row because it was full. `color` is the foreground of its
    first letter or digit (of its first sign if it has none): `palette:<n>`, `rgb:<rrggbb>` or empty.
    """

    text: str
    wrapped: bool = False
    color: str = ""


class Screen(msgspec.Struct, frozen=True):
    """A screen of `len(rows)` x `cols` cells at one moment.

    `cursor` is (row, column) from 0. `scrolled` are rows that left the top since the previous capture, oldest
    first and bounded. `agent_state` is the agent's last word about itself (OSC 7501), `agent_states` all of
    them since the previous capture.
    """

    rows: tuple[Row, ...]
    cols: int
    title: str = ""
    cursor: tuple[int, int] = (0, 0)
    alternate: bool = False
    scrolled: tuple[str, ...] = ()
    agent_state: str = ""
    agent_states: tuple[str, ...] = ()

    def joined(self) -> list[str]:
        """Return the lines as they were written: rows that wrapped joined again, right-trimmed."""
        lines: list[str] = []
        open_line = ""
        for row in self.rows:
            if row.wrapped:
                open_line += row.text + " " * (self.cols - count_columns(row.text))
                continue
            lines.append((open_line + row.text).rstrip())
            open_line = ""
        if open_line:
            lines.append(open_line.rstrip())
        return lines

    def text(self) -> str:
        """Return all rows, a newline between each two."""
        return "\n".join(row.text for row in self.rows)


def parse_screen(value: object) -> Screen:
    """Parse the screen from JSON values; raise UntrustedDataError if they are no screen."""
    try:
        return _parse(value)
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise UntrustedDataError(f"a screen is not what its format says: {error!r}") from error


def _parse(value: object) -> Screen:
    if not isinstance(value, dict):
        raise TypeError("not an object")
    line, column = value["cursor"]
    return Screen(
        rows=tuple(Row(_text(text), bool(wrapped), _text(color)) for text, wrapped, color in value["rows"]),
        cols=int(value["cols"]),
        title=_text(value["title"]),
        cursor=(int(line), int(column)),
        alternate=bool(value["alternate"]),
        scrolled=tuple(_text(row) for row in value.get("scrolled", ())),
        agent_state=_text(value.get("agent_state", "")),
        agent_states=tuple(_text(state) for state in value.get("agent_states", ())),
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value
