"""Paint a terminal that shows the bar: the agent's rows that changed, none of them on the bar's own row."""

from agent_relay.terminal.bar_row import render_bar
from agent_relay.terminal.emulation.repaint import END_SYNC

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.terminal.emulation.emulator import Emulator

# The sequence in progress is cancelled and the picture held still where the terminal knows how (mode 2026).
# Nothing of it clears or scrolls: whoever looks in the middle sees the bar.
_BEGIN = (
    b"\x18\x1b[?2026h\x1b[?25l\x1b[0m\x1b]8;;\x1b\\\x1b(B\x0f\x1b[?69l\x1b[r\x1b[?6l\x1b[?7l\x1b[4l\x1b[20l"
)
_INPUT_OFF = (
    b"\x1b[=0;1u\x1b[>4m\x1b>\x1b[?1l\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l"
    b"\x1b[?1016l\x1b[?1004l\x1b[?2004l"
)
# Keys that are held are for an agent that has asked for nothing yet: they come plain, pastes between marks.
_PLAIN_INPUT = _INPUT_OFF + b"\x1b[?2004h"


def render_scroll(rows: int) -> bytes:
    """Return what moves all rows of a terminal but the lowest, the bar's, into its scrollback."""
    return b"\x18\x1b[0m\x1b[?6l\x1b[?69l" + _scroll(rows - 1)


def _scroll(rows: int) -> bytes:
    # A region of one row is none.
    return b"\x1b[1;%dr\x1b[%d;1H" % (rows, rows) + b"\n" * rows + b"\x1b[r" if rows > 1 else b""


class BarFrame:
    """One terminal with the bar on its bottom line: what was painted last, so that only changes are painted.

    The terminal's screen is not switched: the agent's alternate one is painted over whatever the terminal
    shows. With `keeps`, what the terminal shows moves into its scrollback before the agent's first row is
    painted.
    """

    __slots__ = ("_bar", "_cursor", "_first", "_input", "_is_alternate", "_look", "_rows", "keeps")

    def __init__(self, *, keeps: bool = False) -> None:
        self.keeps = keeps
        self._first = 0
        self._is_alternate = False
        self.forget()

    def forget(self) -> None:
        """Forget what the terminal shows, so that all of it is painted next time."""
        self._bar = self._look = self._input = self._cursor = b""
        self._rows: list[bytes] = []

    def paint(
        self,
        emulator: "Emulator",
        texts: "Sequence[str]",
        *,
        rows: int,
        cols: int,
        holds_keys: bool,
        is_drawn: bool,
    ) -> bytes:
        """Return what brings a terminal of that size up to date; empty if it is.

        Until the agent has drawn something (`is_drawn`), what is above the bar stays as it is.
        """
        parts = []
        bar = render_bar(texts, rows, cols)
        if bar != self._bar:
            self._bar = bar
            parts.append(bar)
        if is_drawn and not self._has_left(emulator):
            self._place(emulator, rows)
            parts += self._paint_rows(emulator, rows, cols)
        look = emulator.look()
        if look != self._look:
            self._look = look
            parts.append(look)
        wanted = _PLAIN_INPUT if holds_keys else _INPUT_OFF + emulator.input_modes()
        if wanted != self._input:
            self._input = wanted
            parts.append(wanted)
        cursor = self._paint_cursor(emulator, rows, cols)
        if not parts and cursor == self._cursor:
            return b""
        self._cursor = cursor
        return _BEGIN + b"".join(parts) + cursor + END_SYNC

    def _has_left(self, emulator: "Emulator") -> bool:
        """Return whether the agent left its alternate screen for an empty one, as agents do when they end.

        Then its last picture stays.
        """
        if emulator.alternate():
            self._is_alternate = True
            return False
        if self._is_alternate and self._rows and not any(emulator.text()):
            return True
        self._is_alternate = False
        return False

    def _place(self, emulator: "Emulator", rows: int) -> None:
        """Choose the agent's first row to show, so that a visible cursor is never under the bar."""
        if emulator.shows_cursor() or not self._rows:
            self._first = max(0, emulator.cursor()[0] - max(0, rows - 2))
        self._first = min(self._first, max(0, emulator.rows - rows + 1))

    def _paint_rows(self, emulator: "Emulator", rows: int, cols: int) -> list[bytes]:
        there = range(self._first, min(self._first + rows - 1, emulator.rows))
        lines = [emulator.paint_row(y, cols) for y in there]
        lines += [b""] * (rows - 1 - len(lines))
        parts = []
        if self.keeps:
            self.keeps = False
            parts.append(_scroll(rows - 1))
        for y, line in enumerate(lines):
            if y >= len(self._rows) or self._rows[y] != line:
                parts.append(b"\x1b[%d;1H\x1b[0m\x1b[2K" % (y + 1) + line)
        self._rows = lines
        return parts

    def _paint_cursor(self, emulator: "Emulator", rows: int, cols: int) -> bytes:
        y, x = emulator.cursor()
        y -= self._first
        is_shown = emulator.shows_cursor() and 0 <= y < rows - 1
        place = b"\x1b[0m\x1b[%d;%dH" % (min(max(y, 0), rows - 1) + 1, min(x, cols - 1) + 1)
        return place + b"\x1b[?25h" * is_shown
