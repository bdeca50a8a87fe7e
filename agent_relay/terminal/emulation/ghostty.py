"""The C interface of libghostty-vt (as shipped in pyghostty 0.1.3) by ctypes: layouts, numbers, signatures.

Loading it this way takes 2 ms; importing the pyghostty package takes 130 ms, which every holder would pay.
Upstream calls the interface unstable until it is tagged, hence the exact pin and `Emulator`'s self-test.
"""

import ctypes
from ctypes import (
    POINTER,
    Structure,
    c_bool,
    c_char_p,
    c_int,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
)

from agent_relay.domain.errors import RelayError

SUCCESS = 0
OUT_OF_SPACE = -3

FORMAT_PLAIN = 0
FORMAT_VT = 1

POINT_ACTIVE = 0
POINT_SCREEN = 2

OPT_WRITE_PTY = 1
OPT_SIZE = 6
OPT_COLOR_FOREGROUND = 11
OPT_COLOR_BACKGROUND = 12
OPT_COLOR_PALETTE = 14
OPT_KITTY_IMAGE_STORAGE_LIMIT = 15
OPT_SCROLLBACK_MAX_LINES = 28
OPT_CONTINUATION_MAX_BYTES = 31

DATA_CURSOR_X = 3
DATA_CURSOR_Y = 4
DATA_ACTIVE_SCREEN = 6
DATA_CURSOR_VISIBLE = 7
DATA_KITTY_KEYBOARD_FLAGS = 8
DATA_TITLE = 12
DATA_SCROLLBACK_ROWS = 15
DATA_COLOR_FOREGROUND = 18
DATA_COLOR_BACKGROUND = 19
DATA_COLOR_CURSOR = 20
DATA_COLOR_PALETTE = 21
DATA_COLOR_PALETTE_DEFAULT = 25
DATA_MODE = 37

ROW_WRAP = 1
CELL_CODEPOINT = 1

COLOR_PALETTE = 1
COLOR_RGB = 2

RENDER_CURSOR_VISUAL_STYLE = 10
RENDER_CURSOR_BLINKING = 12


class Rgb(Structure):
    """GhosttyColorRgb."""

    _fields_ = (("r", c_uint8), ("g", c_uint8), ("b", c_uint8))


Palette = Rgb * 256


class ModeConfig(Structure):
    """GhosttyTerminalModeConfig: bit 15 of `mode` marks an ANSI mode, DEC private otherwise."""

    _fields_ = (("mode", c_uint16), ("value", c_bool))


class GhosttyString(Structure):
    """GhosttyString, borrowed from the terminal until its next change."""

    _fields_ = (("ptr", c_void_p), ("len", c_size_t))


class PointValue(Structure):
    """The union inside GhosttyPoint, written out: unions cannot be passed by value through ctypes."""

    _fields_ = (("x", c_uint16), ("y", c_uint32), ("pad", c_uint64))


class Point(Structure):
    """GhosttyPoint."""

    _fields_ = (("tag", c_int), ("value", PointValue))


class PointCoordinate(Structure):
    """GhosttyPointCoordinate."""

    _fields_ = (("x", c_uint16), ("y", c_uint32))


class GridRef(Structure):
    """GhosttyGridRef: one cell, valid until the terminal's next change."""

    _fields_ = (
        ("size", c_size_t),
        ("node", c_void_p),
        ("x", c_uint16),
        ("y", c_uint16),
    )


class Selection(Structure):
    """GhosttySelection."""

    _fields_ = (
        ("size", c_size_t),
        ("start", GridRef),
        ("end", GridRef),
        ("rectangle", c_bool),
    )


class SelectionFormat(Structure):
    """GhosttyTerminalSelectionFormatOptions."""

    _fields_ = (
        ("size", c_size_t),
        ("emit", c_int),
        ("unwrap", c_bool),
        ("trim", c_bool),
        ("selection", c_void_p),
    )


class ScreenExtra(Structure):
    """GhosttyFormatterScreenExtra."""

    _fields_ = (
        ("size", c_size_t),
        ("cursor", c_bool),
        ("style", c_bool),
        ("hyperlink", c_bool),
        ("protection", c_bool),
        ("kitty_keyboard", c_bool),
        ("charsets", c_bool),
    )


class TerminalExtra(Structure):
    """GhosttyFormatterTerminalExtra."""

    _fields_ = (
        ("size", c_size_t),
        ("palette", c_bool),
        ("modes", c_bool),
        ("scrolling_region", c_bool),
        ("tabstops", c_bool),
        ("pwd", c_bool),
        ("keyboard", c_bool),
        ("screen", ScreenExtra),
    )


class FormatterOptions(Structure):
    """GhosttyFormatterTerminalOptions."""

    _fields_ = (
        ("size", c_size_t),
        ("emit", c_int),
        ("unwrap", c_bool),
        ("trim", c_bool),
        ("extra", TerminalExtra),
        ("selection", c_void_p),
    )


class StyleColor(Structure):
    """GhosttyStyleColor: `value` is the palette index, or r, g, b from the lowest byte up."""

    _fields_ = (("tag", c_int), ("value", c_uint64))


class Style(Structure):
    """GhosttyStyle."""

    _fields_ = (
        ("size", c_size_t),
        ("foreground", StyleColor),
        ("background", StyleColor),
        ("underline_color", StyleColor),
        ("attributes", c_bool * 8),
        ("underline", c_int),
    )


class SizeReport(Structure):
    """GhosttySizeReportSize; cells in pixels."""

    _fields_ = (
        ("rows", c_uint16),
        ("columns", c_uint16),
        ("cell_width", c_uint32),
        ("cell_height", c_uint32),
    )


WritePty = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_size_t)
ReportSize = ctypes.CFUNCTYPE(c_bool, c_void_p, c_void_p, POINTER(SizeReport))

_SIGNATURES = (
    ("terminal_new", c_int, (c_void_p, c_void_p, c_uint16, c_uint16)),
    ("terminal_free", None, (c_void_p,)),
    ("terminal_resize", c_int, (c_void_p, c_uint16, c_uint16, c_uint32, c_uint32)),
    ("terminal_set", c_int, (c_void_p, c_int, c_void_p)),
    ("terminal_get", c_int, (c_void_p, c_int, c_void_p)),
    ("terminal_vt_write", None, (c_void_p, c_char_p, c_size_t)),
    ("terminal_continuation_buf", c_int, (c_void_p, c_void_p, c_size_t, c_void_p)),
    ("terminal_grid_ref", c_int, (c_void_p, Point, c_void_p)),
    ("terminal_grid_ref_track", c_int, (c_void_p, Point, c_void_p)),
    ("terminal_selection_format_buf", c_int, (c_void_p, SelectionFormat, c_void_p, c_size_t, c_void_p)),
    ("tracked_grid_ref_point", c_int, (c_void_p, c_int, c_void_p)),
    ("tracked_grid_ref_free", None, (c_void_p,)),
    ("grid_ref_row", c_int, (c_void_p, c_void_p)),
    ("grid_ref_cell", c_int, (c_void_p, c_void_p)),
    ("grid_ref_style", c_int, (c_void_p, c_void_p)),
    ("row_get", c_int, (c_uint64, c_int, c_void_p)),
    ("cell_get", c_int, (c_uint64, c_int, c_void_p)),
    ("formatter_terminal_new", c_int, (c_void_p, c_void_p, c_void_p, FormatterOptions)),
    ("formatter_format_buf", c_int, (c_void_p, c_void_p, c_size_t, c_void_p)),
    ("formatter_free", None, (c_void_p,)),
    ("render_state_new", c_int, (c_void_p, c_void_p)),
    ("render_state_update", c_int, (c_void_p, c_void_p)),
    ("render_state_get", c_int, (c_void_p, c_int, c_void_p)),
    ("render_state_free", None, (c_void_p,)),
)

_loaded: dict[str, ctypes.CDLL] = {}


class EmulatorError(RelayError):
    """The emulator's library is missing, is another version than ours, or ran out of memory."""


def check(result: int, what: str) -> None:
    """Raise EmulatorError if the library says that `what` failed."""
    if result != SUCCESS:
        raise EmulatorError(f"the terminal emulator failed: {what} gave {result}")


def load(library: str) -> ctypes.CDLL:
    """Load the library and declare its signatures, once per path; raise OSError, AttributeError if unfit."""
    if library not in _loaded:
        lib = ctypes.CDLL(library)
        for name, result, arguments in _SIGNATURES:
            function = getattr(lib, f"ghostty_{name}")
            function.restype = result
            function.argtypes = arguments
        _loaded[library] = lib
    return _loaded[library]
