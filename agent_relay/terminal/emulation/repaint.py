"""The bytes that bring any terminal to an emulated one's exact state: picture, modes, cursor, keyboard."""

import ctypes
from ctypes import byref

from agent_relay.terminal.emulation import ghostty
from agent_relay.terminal.emulation.ghostty import check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

DEFAULT_COLORS = b"\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"
# Brings any terminal to its defaults without touching what scrolled away.
DEFAULTS = (
    b"\x1b[0m\x1b]8;;\x1b\\\x1b(B\x1b)B\x0f\x1b[?69l\x1b[r\x1b[?6l\x1b[?7h\x1b[4l\x1b[20l\x1b[?1l\x1b[?5l\x1b>"
    b"\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l"
    b"\x1b[?2027l\x1b[?2031l\x1b[=0;1u\x1b[>4m\x1b[0 q\x1b[?25h" + DEFAULT_COLORS
)
# What every repaint starts with: the sequence in progress is cancelled, and mode 2026 holds the picture still
# until the repaint is complete, where the terminal knows it.
BEGIN = b"\x18\x1b[?2026h\x1b[?1049l" + DEFAULTS + b"\x1b[H\x1b[2J"
COVER = b"\x1b[?1049h" + DEFAULTS
END_SYNC = b"\x1b[?2026l"
_INVERSE = bytes(range(255, -1, -1))


def select(
    lib: ctypes.CDLL, handle: int, tag: int, *, start: tuple[int, int], end: tuple[int, int]
) -> ghostty.Selection:
    """Select the cells from `start` to `end` (column, row; inclusive), valid until the terminal changes."""
    selection = ghostty.Selection(ctypes.sizeof(ghostty.Selection))
    for name, (x, y) in (("start", start), ("end", end)):
        ref = ghostty.GridRef(ctypes.sizeof(ghostty.GridRef))
        point = ghostty.Point(tag, ghostty.PointValue(x, y, 0))
        check(lib.ghostty_terminal_grid_ref(handle, point, byref(ref)), f"grid_ref {x},{y}")
        setattr(selection, name, ref)
    return selection


def paint(lib: ctypes.CDLL, handle: int, *, cols: int, rows: int) -> bytes:
    """Return the active screen with all its state, for a terminal just reset and cleared."""
    screen = ghostty.ScreenExtra(
        ctypes.sizeof(ghostty.ScreenExtra),
        cursor=True,
        style=True,
        hyperlink=True,
        protection=True,
        kitty_keyboard=True,
        charsets=True,
    )
    extra = ghostty.TerminalExtra(
        ctypes.sizeof(ghostty.TerminalExtra),
        palette=False,
        modes=True,
        scrolling_region=True,
        tabstops=True,
        pwd=False,
        keyboard=True,
        screen=screen,
    )
    # Without a selection of the active area the formatter shows history too and drops blank rows below.
    area = select(lib, handle, ghostty.POINT_ACTIVE, start=(0, 0), end=(cols - 1, rows - 1))
    return _format(lib, handle, area, extra)


def paint_row(lib: ctypes.CDLL, handle: int, y: int, *, cols: int) -> bytes:
    """Return the first `cols` cells of a row of the active screen; colors begin and end in their defaults."""
    area = select(lib, handle, ghostty.POINT_ACTIVE, start=(0, y), end=(cols - 1, y))
    return _format(lib, handle, area, ghostty.TerminalExtra(ctypes.sizeof(ghostty.TerminalExtra)))


def read_keyboard(lib: ctypes.CDLL, handle: int) -> bytes:
    """Return what sets xterm's modifyOtherKeys as the program did; empty if it did not."""
    area = select(lib, handle, ghostty.POINT_ACTIVE, start=(0, 0), end=(0, 0))
    extra = ghostty.TerminalExtra(ctypes.sizeof(ghostty.TerminalExtra), keyboard=True)
    found = _format(lib, handle, area, extra)
    at = found.rfind(b"\x1b[>4;")
    return found[at:] if at >= 0 else b""


def _format(lib: ctypes.CDLL, handle: int, area: ghostty.Selection, extra: ghostty.TerminalExtra) -> bytes:
    options = ghostty.FormatterOptions(
        ctypes.sizeof(ghostty.FormatterOptions),
        ghostty.FORMAT_VT,
        unwrap=False,
        trim=False,
        extra=extra,
        selection=ctypes.addressof(area),
    )
    formatter = ctypes.c_void_p()
    check(
        lib.ghostty_formatter_terminal_new(None, byref(formatter), handle, options), "formatter_terminal_new"
    )
    try:
        size = ctypes.c_size_t()
        lib.ghostty_formatter_format_buf(formatter, None, 0, byref(size))
        buffer = ctypes.create_string_buffer(max(size.value, 1))
        lib.ghostty_formatter_format_buf(formatter, buffer, size.value, byref(size))
        return ctypes.string_at(buffer, size.value)
    finally:
        lib.ghostty_formatter_free(formatter)


def colors(
    lib: ctypes.CDLL, handle: int, foreground: tuple[int, int, int], background: tuple[int, int, int]
) -> bytes:
    """Return the default colors the program set (OSC 10, 11, 12), if they differ from those we gave it."""
    said = b""
    for code, data, default in (
        (10, ghostty.DATA_COLOR_FOREGROUND, foreground),
        (11, ghostty.DATA_COLOR_BACKGROUND, background),
        (12, ghostty.DATA_COLOR_CURSOR, None),
    ):
        rgb = ghostty.Rgb()
        result = lib.ghostty_terminal_get(handle, data, byref(rgb))
        if result == ghostty.SUCCESS and (rgb.r, rgb.g, rgb.b) != default:
            said += b"\x1b]%d;rgb:%02x/%02x/%02x\x1b\\" % (code, rgb.r, rgb.g, rgb.b)
    return said


def read_palette(lib: ctypes.CDLL, handle: int) -> dict[int, bytes]:
    """Return the palette entries the program set (OSC 4), as red, green and blue; takes 20 us.

    The library does not say which entries are set, and a program may set one to the very default. An entry
    that is not set shows the default, whatever that is: so the defaults are replaced for a moment.
    """
    current, default, beneath = ghostty.Palette(), ghostty.Palette(), ghostty.Palette()
    check(lib.ghostty_terminal_get(handle, ghostty.DATA_COLOR_PALETTE_DEFAULT, byref(default)), "palette")
    check(lib.ghostty_terminal_get(handle, ghostty.DATA_COLOR_PALETTE, byref(current)), "palette")
    other = ghostty.Palette.from_buffer_copy(bytes(default).translate(_INVERSE))
    check(lib.ghostty_terminal_set(handle, ghostty.OPT_COLOR_PALETTE, byref(other)), "set palette")
    check(lib.ghostty_terminal_get(handle, ghostty.DATA_COLOR_PALETTE, byref(beneath)), "palette")
    check(lib.ghostty_terminal_set(handle, ghostty.OPT_COLOR_PALETTE, byref(default)), "set palette")
    known, shown, hidden, swapped = bytes(default), bytes(current), bytes(beneath), bytes(other)
    if shown == known and hidden == swapped:
        return {}
    entries = ((index, slice(3 * index, 3 * index + 3)) for index in range(len(current)))
    return {
        index: shown[part]
        for index, part in entries
        if shown[part] != known[part] or hidden[part] != swapped[part]
    }


def render_palette(colors: dict[int, bytes]) -> bytes:
    """Return what sets these palette entries, each by itself: not every terminal takes several at once."""
    return b"".join(
        b"\x1b]4;%d;rgb:%02x/%02x/%02x\x1b\\" % (index, *color) for index, color in sorted(colors.items())
    )


def reset_palette(entries: "Iterable[int]") -> bytes:
    """Return what gives these palette entries the terminal's own colors; others may be set by its user."""
    return b"".join(b"\x1b]104;%d\x1b\\" % index for index in sorted(entries))


def continuation(lib: ctypes.CDLL, handle: int) -> bytes:
    """Return what was read of a sequence that has not ended yet; empty if there is none or it is too long."""
    size = ctypes.c_size_t()
    if lib.ghostty_terminal_continuation_buf(handle, None, 0, byref(size)) != ghostty.OUT_OF_SPACE:
        return b""
    buffer = ctypes.create_string_buffer(size.value)
    result = lib.ghostty_terminal_continuation_buf(handle, buffer, size.value, byref(size))
    return ctypes.string_at(buffer, size.value) if result == ghostty.SUCCESS else b""
