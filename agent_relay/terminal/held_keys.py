"""Keys typed while no agent may receive them: kept in order and whole, up to a limit."""

import re

MOST_BYTES = 64 << 10
PASTE_BEGIN = b"\x1b[200~"
PASTE_END = b"\x1b[201~"
# A key is a character, a whole escape sequence, or Escape with what makes it Alt and a key.
_KEY = re.compile(rb"\x1b(?:\[M...|\[[0-?]*[ -/]*[@-~]|O.|[^\[O])|[\xc2-\xf4][\x80-\xbf]{1,3}|.", re.DOTALL)
# What a terminal sends beside keys, in the moment before it is told not to: focus, mouse, and keys let go
# (kitty keyboard protocol). Nobody typed them.
_NOT_TYPED = re.compile(
    rb"\x1b\[(?:[IO]|<[0-9;]{0,32}[Mm]|M...|[0-9:]{0,32};[0-9]{0,4}:3[0-9:;]{0,32}[u~A-S])", re.DOTALL
)
_ESCAPE = re.compile(rb"\x1b(?:\[27(?:;1?(?::[12])?)?u)?")
_PIECE = re.compile(rb"\x1b\[200~.*?(?:\x1b\[201~|\Z)|[^\x00-\x1f\x7f]+|" + _KEY.pattern + rb"|.", re.DOTALL)
_INTERRUPT = b"\x03"
_APART = frozenset({b"\r", _INTERRUPT})
# Agents take an Enter that comes right behind text for a line of a paste. The longest such time is codex's:
# 120 ms (PASTE_ENTER_SUPPRESS_WINDOW of its paste_burst.rs); gemini's is 30 ms (FAST_RETURN_TIMEOUT).
_APART_S = 0.2
_KEYS_S = 0.05
# Pressed twice within a second, Ctrl-C ends claude, codex and gemini; that it was is not known any more.
_INTERRUPTS_S = 1.2


def is_escape(data: bytes) -> bool:
    """Return whether this is the Escape key alone, in either of its forms, and nothing else."""
    return _ESCAPE.fullmatch(data) is not None


def split_keys(data: bytes) -> list[bytes]:
    """Return whole keys, runs of text and whole pastes: the pieces in which a person would have typed it."""
    return _PIECE.findall(data)


def find_pause(before: bytes, after: bytes) -> float:
    """Return how many seconds must pass between these two pieces, so that an agent takes both for keys."""
    if before == after == _INTERRUPT:
        return _INTERRUPTS_S
    return _APART_S if before in _APART or after in _APART else _KEYS_S


class HeldKeys:
    """Keys typed on one terminal and not given to the agent; a paste is kept whole or not at all."""

    __slots__ = ("_data", "_is_refused", "_paste")

    def __init__(self) -> None:
        self._data = bytearray()
        self._paste: bytearray | None = None
        self._is_refused = False

    @property
    def size(self) -> int:
        """How many bytes are kept."""
        return len(self._data) + len(self._paste or b"")

    @property
    def is_within(self) -> bool:
        """Whether a paste has begun and not ended."""
        return self._paste is not None

    def add(self, data: bytes) -> bool:
        """Keep what was typed next; return whether there was room for all of it.

        The mark of a paste's beginning must arrive whole; the mark of its end may be cut anywhere.
        """
        is_whole = True
        while data:
            if self._paste is None:
                at = data.find(PASTE_BEGIN)
                keys, data = (data, b"") if at < 0 else (data[:at], data[at:])
                is_whole &= self._add_keys(_NOT_TYPED.sub(b"", keys))
                if data:
                    data = data[len(PASTE_BEGIN) :]
                    self._paste, self._is_refused = bytearray(PASTE_BEGIN), False
                    is_whole &= self._check_paste()
            else:
                data, fits = self._add_paste(self._paste, data)
                is_whole &= fits
        return is_whole

    def _add_keys(self, data: bytes) -> bool:
        room, end = MOST_BYTES - len(self._data), 0
        if len(data) > room:
            for key in _KEY.finditer(data):
                if key.end() > room:
                    break
                end = key.end()
            self._data += data[:end]
            return False
        self._data += data
        return True

    def _add_paste(self, paste: bytearray, data: bytes) -> tuple[bytes, bool]:
        """Add to the paste; return what follows it, and whether there is room for all of it so far."""
        begin = max(0, len(paste) - len(PASTE_END) + 1)
        paste += data
        end = paste.find(PASTE_END, begin)
        if end < 0:
            return b"", self._check_paste()
        rest = bytes(paste[end + len(PASTE_END) :])
        del paste[end + len(PASTE_END) :]
        fits = self._check_paste()
        if not self._is_refused:
            self._data += paste
        self._paste = None
        return rest, fits

    def _check_paste(self) -> bool:
        paste = self._paste or bytearray()
        self._is_refused = self._is_refused or self.size > MOST_BYTES
        if self._is_refused:
            # Its end is still looked for, and may have begun.
            del paste[: -len(PASTE_END) + 1]
        return not self._is_refused

    def take(self) -> bytes:
        """Return and clear all that was kept; if a paste continues afterwards, its beginning is included."""
        if self._paste is not None:
            self._data += PASTE_BEGIN if self._is_refused else self._paste
        data = bytes(self._data)
        self._data.clear()
        self._paste = None
        return data
