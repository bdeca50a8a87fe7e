"""One terminal, emulated exactly: bytes in; screen, modes, repaint and the terminal's answers out."""

import ctypes
from ctypes import byref

from agent_relay.terminal.emulation import ghostty, repaint
from agent_relay.terminal.emulation import output_scanner as alternate_screen
from agent_relay.terminal.emulation.ghostty import EmulatorError, check

FOREGROUND = (0xD8, 0xD8, 0xD8)
BACKGROUND = (0x00, 0x00, 0x00)
# Pixels of one cell while no terminal with known pixels is attached; programs use them to size images only.
CELL_WIDTH_PX = 8
CELL_HEIGHT_PX = 16
# A sequence cut off by the end of a read is repeated after a repaint; the longest we keep is one OSC 52 copy.
_CONTINUATION_MAX_BYTES = 1 << 20
_SCROLLED_MAX_ROWS = 1000
_MODES = (1, 5, 6, 7, 9, 12, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016, 2004, 2026, 2027, 2031)
_INPUT_MODES = (1, 66, 9, 1000, 1002, 1003, 1005, 1006, 1015, 1016, 1004, 2004)
_ANSI = 0x8000
_DEFAULT_SHAPE = 2
_TEST_COLS = 4  # what the test of the library takes up
FEWEST_ROWS = 2
"""A terminal of one row is emulated as one of two.

libghostty-vt of pyghostty 0.1.3 crashes its process (SIGSEGV) if a screen with links (OSC 8) is made one row
high and text goes on scrolling; with two rows the same input does no harm (found by `tests.fuzz.holder`).
"""


class Emulator:
    """A terminal of `cols` x `rows` cells and `scrollback` rows of history, run by the library at a path.

    One row becomes `FEWEST_ROWS`.

    Raises EmulatorError if the library cannot be loaded or does not pass a write-and-read-back test.
    """

    def __init__(self, library: str, cols: int, rows: int, *, scrollback: int = 1000) -> None:
        try:
            self._lib = ghostty.load(library)
        except (OSError, AttributeError) as error:
            raise EmulatorError(
                f"the terminal emulator {library} cannot be loaded: {error}",
                hint="Reinstall agent-relay: it needs pyghostty 0.1.3 exactly.",
            ) from error
        self._library, self._scrollback = library, scrollback
        self.cols = max(cols, _TEST_COLS)
        self.rows = _raise_rows(rows)
        self._replies = bytearray()
        self._held = b""
        self._primary = b""
        self._colored: set[int] = set()
        self._tracked = ctypes.c_void_p()
        # ctypes callbacks die with their Python objects; the library keeps only the bare address.
        self._on_reply = ghostty.WritePty(self._keep_reply)
        self._on_size = ghostty.ReportSize(self._report_size)
        self._cell_px = (CELL_WIDTH_PX, CELL_HEIGHT_PX)
        self._handle = self._new(scrollback)
        self._render = ctypes.c_void_p()
        check(self._lib.ghostty_render_state_new(None, byref(self._render)), "render_state_new")
        self._write = self._lib.ghostty_terminal_vt_write
        self._buffer = ctypes.create_string_buffer(cols * rows * 4 + 4096)
        self._test()
        if cols < _TEST_COLS:
            self.resize(cols, rows)
        self._track()

    def _new(self, scrollback: int) -> int:
        pointer = ctypes.c_void_p()
        check(self._lib.ghostty_terminal_new(None, byref(pointer), self.cols, self.rows), "terminal_new")
        handle = pointer.value or 0
        for option, value in (
            (ghostty.OPT_SCROLLBACK_MAX_LINES, ctypes.c_size_t(scrollback)),
            (ghostty.OPT_CONTINUATION_MAX_BYTES, ctypes.c_size_t(_CONTINUATION_MAX_BYTES)),
            (ghostty.OPT_KITTY_IMAGE_STORAGE_LIMIT, ctypes.c_uint64(0)),
            (ghostty.OPT_COLOR_FOREGROUND, ghostty.Rgb(*FOREGROUND)),
            (ghostty.OPT_COLOR_BACKGROUND, ghostty.Rgb(*BACKGROUND)),
        ):
            check(self._lib.ghostty_terminal_set(handle, option, byref(value)), f"set {option}")
        for option, callback in ((ghostty.OPT_WRITE_PTY, self._on_reply), (ghostty.OPT_SIZE, self._on_size)):
            address = ctypes.cast(callback, ctypes.c_void_p)
            check(self._lib.ghostty_terminal_set(handle, option, address), f"set {option}")
        return handle

    def _test(self) -> None:
        """Write a mark, read it back, wipe it: a library with another layout fails here, not later."""
        self.feed(b"\x1b[1;3HX\x1b[6n")
        found, replies = self.text()[0], self.take_replies()
        self.feed(b"\x1b[2K\x1b[H")
        if found != "  X" or replies != b"\x1b[1;4R":
            raise EmulatorError(
                "the terminal emulator's library does not do what we know of it",
                hint="Reinstall agent-relay: it needs pyghostty 0.1.3 exactly.",
            )

    def _keep_reply(self, _terminal: int, _user: int, data: int, size: int) -> None:
        self._replies += ctypes.string_at(data, size)

    def _report_size(self, _terminal: int, _user: int, out: "ctypes._Pointer[ghostty.SizeReport]") -> bool:
        report = out.contents
        report.rows, report.columns = self.rows, self.cols
        report.cell_width, report.cell_height = self._cell_px
        return True

    def feed(self, data: bytes) -> None:
        """Process what the program wrote, cut anywhere."""
        data, self._held = alternate_screen.cut_begun(self._held + data)
        if alternate_screen.may_enter(data):
            data = self._feed_switches(data)
        self._write(self._handle, data, len(data))

    def _feed_switches(self, data: bytes) -> bytes:
        """Process everything up to the last switch to the alternate screen; return what follows it."""
        fed = 0
        for begin, end in alternate_screen.find_switches(data):
            # The formatter shows the active screen only: what lies beneath is kept before it is covered.
            self._write(self._handle, data[fed:begin], begin - fed)
            if not self.alternate():
                self._primary = self._paint()
            self._write(self._handle, data[begin:end], end - begin)
            fed = end
        return data[fed:]

    def resize(self, cols: int, rows: int, *, width_px: int = 0, height_px: int = 0) -> None:
        """Change the size in cells; `width_px`, `height_px` are the whole terminal's pixels, 0 if unknown."""
        self._cell_px = (width_px // cols or CELL_WIDTH_PX, height_px // rows or CELL_HEIGHT_PX)
        rows = _raise_rows(rows)
        result = self._lib.ghostty_terminal_resize(self._handle, cols, rows, *self._cell_px)
        check(result, "terminal_resize")
        self.cols = cols
        self.rows = rows

    def text(self) -> list[str]:
        """Return the screen: exactly `rows` lines, trailing blanks removed."""
        lines = self._plain(ghostty.POINT_ACTIVE, 0, self.rows - 1)
        return lines + [""] * (self.rows - len(lines))

    def _plain(self, tag: int, first: int, last: int) -> list[str]:
        selection = repaint.select(self._lib, self._handle, tag, start=(0, first), end=(self.cols - 1, last))
        options = ghostty.SelectionFormat(
            ctypes.sizeof(ghostty.SelectionFormat),
            ghostty.FORMAT_PLAIN,
            unwrap=False,
            trim=True,
            selection=ctypes.addressof(selection),
        )
        size = ctypes.c_size_t()
        call = self._lib.ghostty_terminal_selection_format_buf
        result = call(self._handle, options, self._buffer, len(self._buffer), byref(size))
        if result == ghostty.OUT_OF_SPACE:
            self._buffer = ctypes.create_string_buffer(size.value)
            result = call(self._handle, options, self._buffer, len(self._buffer), byref(size))
        check(result, "selection_format")
        text = ctypes.string_at(self._buffer, size.value).decode("utf-8", "replace")
        return [line.rstrip() for line in text.split("\n")][: last - first + 1]

    def _ref(self, tag: int, x: int, y: int) -> ghostty.GridRef:
        ref = ghostty.GridRef(ctypes.sizeof(ghostty.GridRef))
        point = ghostty.Point(tag, ghostty.PointValue(x, y, 0))
        check(self._lib.ghostty_terminal_grid_ref(self._handle, point, byref(ref)), f"grid_ref {x},{y}")
        return ref

    def color(self, x: int, y: int) -> str:
        """Return the foreground of a cell: `palette:<0-255>`, `rgb:<rrggbb>`, or empty for the default."""
        return self.look_at(x, y)[0]

    def look_at(self, x: int, y: int) -> tuple[str, bool]:
        """Return the `color` of a cell, and whether its row goes on in the next one because it was full."""
        ref, style = self._ref(ghostty.POINT_ACTIVE, x, y), ghostty.Style(ctypes.sizeof(ghostty.Style))
        row, wraps = ctypes.c_uint64(), ctypes.c_bool()
        self._lib.ghostty_grid_ref_row(byref(ref), byref(row))
        self._lib.ghostty_row_get(row, ghostty.ROW_WRAP, byref(wraps))
        self._lib.ghostty_grid_ref_style(byref(ref), byref(style))
        color = style.foreground
        if color.tag == ghostty.COLOR_PALETTE:
            return f"palette:{color.value & 0xFF}", wraps.value
        if color.tag == ghostty.COLOR_RGB:
            return f"rgb:{(color.value & 0xFFFFFF).to_bytes(3, 'little').hex()}", wraps.value
        return "", wraps.value

    def codepoint(self, x: int, y: int) -> int:
        """Return the code point in a cell; 0 if it is empty or the second half of a wide character."""
        cell, value = ctypes.c_uint64(), ctypes.c_uint32()
        self._lib.ghostty_grid_ref_cell(byref(self._ref(ghostty.POINT_ACTIVE, x, y)), byref(cell))
        self._lib.ghostty_cell_get(cell, ghostty.CELL_CODEPOINT, byref(value))
        return value.value

    def _number(self, data: int) -> int:
        # The widest answer is 8 bytes; the library writes as many as the value has, little end first.
        value = ctypes.c_uint64()
        result = self._lib.ghostty_terminal_get(self._handle, data, byref(value))
        check(result, f"terminal_get {data}")
        return value.value

    def cursor(self) -> tuple[int, int]:
        """Return row and column of the cursor, from 0."""
        return self._number(ghostty.DATA_CURSOR_Y), self._number(ghostty.DATA_CURSOR_X)

    def alternate(self) -> bool:
        """Return whether the alternate screen is shown."""
        return self._number(ghostty.DATA_ACTIVE_SCREEN) != 0

    def title(self) -> str:
        """Return the window title the program set last, empty if none."""
        text = ghostty.GhosttyString()
        check(self._lib.ghostty_terminal_get(self._handle, ghostty.DATA_TITLE, byref(text)), "title")
        return ctypes.string_at(text.ptr, text.len).decode("utf-8", "replace") if text.len else ""

    def mode(self, number: int, *, ansi: bool = False) -> bool:
        """Return whether a DEC private mode (or an ANSI one) is set."""
        config = ghostty.ModeConfig(number | _ANSI if ansi else number)
        self._lib.ghostty_terminal_get(self._handle, ghostty.DATA_MODE, byref(config))
        return bool(config.value)

    def modes(self) -> dict[str, int]:
        """Return every mode that a repainted terminal must have: DEC numbers as keys, and five named ones.

        `insert`, `alternate`, `cursor_visible`, `kitty` (keyboard flags) and `cursor_shape` (DECSCUSR 1 to
        6).
        """
        known = {str(number): int(self.mode(number)) for number in _MODES}
        known["insert"] = int(self.mode(4, ansi=True))
        known["alternate"] = int(self.alternate())
        known["cursor_visible"] = int(self.shows_cursor())
        known["kitty"] = self._number(ghostty.DATA_KITTY_KEYBOARD_FLAGS)
        known["cursor_shape"] = self._cursor_shape()
        return known

    def _cursor_shape(self) -> int:
        shape, blinking = ctypes.c_int(), ctypes.c_bool()
        self._lib.ghostty_render_state_update(self._render, self._handle)
        self._lib.ghostty_render_state_get(self._render, ghostty.RENDER_CURSOR_VISUAL_STYLE, byref(shape))
        self._lib.ghostty_render_state_get(self._render, ghostty.RENDER_CURSOR_BLINKING, byref(blinking))
        return {0: 6, 1: 2, 2: 4, 3: 2}[shape.value] - int(blinking.value)

    def take_replies(self) -> bytes:
        """Return the terminal's answers to the program's questions since the last call."""
        if not self._replies:
            return b""
        replies = bytes(self._replies)
        self._replies.clear()
        return replies

    def _paint(self) -> bytes:
        return repaint.paint(self._lib, self._handle, cols=self.cols, rows=self.rows)

    def paint_row(self, y: int, cols: int) -> bytes:
        """Return the first `cols` cells of row `y` with their colors, for a terminal whose pen was reset."""
        return repaint.paint_row(self._lib, self._handle, y, cols=min(cols, self.cols))

    def look(self) -> bytes:
        """Return what gives any terminal the colors and the cursor shape of this one."""
        reverse = b"\x1b[?5h" if self.mode(5) else b"\x1b[?5l"
        shown = b"\x1b[%d q" % self._cursor_shape() + reverse + repaint.DEFAULT_COLORS
        return shown + repaint.colors(self._lib, self._handle, FOREGROUND, BACKGROUND) + self._paint_palette()

    def input_modes(self) -> bytes:
        """Return what makes a terminal in its defaults send keys, pastes and mouse as the program asked."""
        said = b"".join(b"\x1b[?%dh" % number for number in _INPUT_MODES if self.mode(number))
        flags = self._number(ghostty.DATA_KITTY_KEYBOARD_FLAGS)
        said += repaint.read_keyboard(self._lib, self._handle)
        return said + b"\x1b[=%d;1u" % flags if flags else said

    def shows_cursor(self) -> bool:
        """Return whether the program shows the cursor."""
        return self._number(ghostty.DATA_CURSOR_VISIBLE) != 0

    def repaint(self) -> bytes:
        """Return bytes after which any terminal of this size shows what this one shows and goes on like it.

        They restore both screens, modes, scroll region, tab stops, pen, character sets, keyboard, cursor,
        title, colors, changed palette entries, and the unfinished sequence. Not the saved cursor (DECSC,
        decision 10).
        """
        below = self._primary + repaint.COVER if self.alternate() else b""
        painted = repaint.BEGIN + below + self._paint()
        shape = self._cursor_shape()
        if shape != _DEFAULT_SHAPE:
            painted += b"\x1b[%d q" % shape
        painted += repaint.colors(self._lib, self._handle, FOREGROUND, BACKGROUND) + self._paint_palette()
        title = self.title()
        if title:
            painted += b"\x1b]2;" + title.encode() + b"\x1b\\"
        if not self.mode(2026):
            painted += repaint.END_SYNC
        return painted + self.unfinished()

    def unfinished(self) -> bytes:
        """Return what the program has begun of a sequence that has not ended."""
        return repaint.continuation(self._lib, self._handle) + self._held

    def _paint_palette(self) -> bytes:
        colors = self.see_colors()
        return repaint.reset_palette(self._colored - colors.keys()) + repaint.render_palette(colors)

    def see_colors(self) -> dict[int, bytes]:
        """Return the palette entries set now; a later repaint resets those of them that are no longer set."""
        self._colored.update(colors := repaint.read_palette(self._lib, self._handle))
        return colors

    def uncolor(self) -> bytes:
        """Return what gives a terminal that followed its palette back; empty if the program changed none."""
        return repaint.reset_palette(self._colored | self.see_colors().keys())

    def _track(self) -> None:
        """Mark the top row of the screen: rows found above it later have scrolled away since."""
        self._lib.ghostty_tracked_grid_ref_free(self._tracked)
        point = ghostty.Point(ghostty.POINT_ACTIVE, ghostty.PointValue(0, 0, 0))
        self._lib.ghostty_terminal_grid_ref_track(self._handle, point, byref(self._tracked))

    def take_scrolled(self) -> tuple[str, ...]:
        """Return the rows that left the top of the main screen since the last call, oldest first.

        At most 1,000. Empty while the alternate screen is shown: no terminal keeps its rows.
        """
        if self.alternate():
            return ()
        above = self._number(ghostty.DATA_SCROLLBACK_ROWS)
        point = ghostty.PointCoordinate()
        found = self._lib.ghostty_tracked_grid_ref_point(self._tracked, ghostty.POINT_SCREEN, byref(point))
        # A mark that is gone was scrolled out of the history itself, or the history was wiped (CSI 3 J).
        first = point.y if found == ghostty.SUCCESS else 0
        first = max(first, above - _SCROLLED_MAX_ROWS)
        if first >= above:
            return ()
        lines = self._plain(ghostty.POINT_SCREEN, first, above - 1)
        self._track()
        return tuple(lines + [""] * (above - first - len(lines)))

    def renew(self) -> "Emulator":
        """Create another emulator of this size, which shows nothing yet. Raise EmulatorError."""
        return Emulator(self._library, self.cols, self.rows, scrollback=self._scrollback)

    def close(self) -> None:
        """Free the terminal; nothing else may be called afterwards."""
        self._lib.ghostty_tracked_grid_ref_free(self._tracked)
        self._lib.ghostty_render_state_free(self._render)
        self._lib.ghostty_terminal_free(self._handle)


def _raise_rows(rows: int) -> int:
    """Return the number of rows that is emulated; 0 is passed on for the library to refuse."""
    return FEWEST_ROWS if rows == 1 else rows
