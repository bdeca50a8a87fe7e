"""The line a person is typing to an agent: how long it is, and the keys that type it to another one."""

import re

PASTE_BEGIN = b"\x1b[200~"
PASTE_END = b"\x1b[201~"
_SUBMIT = re.compile(rb"[\r\x03\x15]")
_ERASE = re.compile(rb"[\x08\x7f]")
# Control characters write nothing, and a character of several bytes is one.
_SILENT = re.compile(rb"[\x00-\x07\x09\x0b-\x1f\x80-\xbf]+")
# Retyped as keys that mean the same in every agent; a newline goes as a paste, which submits nothing.
_LINE_END = PASTE_BEGIN + b"\n" + PASTE_END
_RETYPED = {
    b"\x02": b"\x1b[D",
    b"\x06": b"\x1b[C",
    b"\x04": b"\x1b[3~",
    b"\n": _LINE_END,
    b"\r": _LINE_END,
}
# A paste, or what is left of one that was cut by the keys of another terminal or by a new line.
_RETYPE = re.compile(
    rb"\x1b\[200~.*?(?:\x1b\[201~|\Z)|\x1b\[201~|\r\n|[\x00\x02-\x04\x06\x07\x09-\x16\x18-\x1f]", re.DOTALL
)
# Other control characters are left out: in another agent they may do something worse.
_OTHER = re.compile(rb"[\x00\x07\x09\x0b-\x16\x18-\x1f]+")
MOST_BYTES = 64 << 10


class TypedLine:
    """The line typed since the last submit: Enter, Ctrl-C or Ctrl-U.

    `count` is the number of its characters, 0 if none waits; `keys` are the text, pastes and editing keys
    that were typed, `None` if they are more than `MOST_BYTES` or shall not be typed anywhere else.
    """

    __slots__ = ("count", "keys")

    def __init__(self) -> None:
        self.count = 0
        self.keys: bytearray | None = bytearray()

    def clear(self) -> None:
        """Begin a new line."""
        self.count, self.keys = 0, bytearray()

    def forget_keys(self) -> None:
        """Keep only the length of what was typed of this line, and of what is still typed of it."""
        if self.count:
            self.keys = None

    def type(self, text: bytes) -> None:
        """Add keys without escape sequences."""
        *submitted, rest = _SUBMIT.split(text)
        if submitted:
            self.clear()
        count = self.count
        for number, part in enumerate(_ERASE.split(rest)):
            count = max(0, count - (number > 0)) + len(_SILENT.sub(b"", part))
        if count:
            self.add(_OTHER.sub(b"", rest), count - self.count)
        else:
            self.clear()

    def add(self, keys: bytes, count: int) -> None:
        """Add keys that submit nothing and are so many characters."""
        self.count += count
        if self.keys is not None:
            self.keys += keys
            if len(self.keys) > MOST_BYTES:
                self.keys = None

    def render_keys(self, *, is_open: bool = False) -> bytes:
        """Return keys that type the line anew, and submit nothing; empty if they were not kept.

        With `is_open` they end within a paste, whose rest is still to come; else no paste is left open.
        """
        keys = _RETYPE.sub(_retype, self.keys or b"")
        if (keys.rfind(PASTE_BEGIN) > keys.rfind(PASTE_END)) is is_open:
            return keys
        return keys + (PASTE_BEGIN if is_open else PASTE_END)


def _retype(piece: "re.Match[bytes]") -> bytes:
    text = piece.group().replace(b"\r\n", b"\n")
    if not text.startswith(PASTE_BEGIN):
        return _RETYPED.get(text, b"")
    return PASTE_BEGIN + text.replace(PASTE_BEGIN, b"").replace(b"\r", b"\n")
