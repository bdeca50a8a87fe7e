"""What is typed at the relay prompt, one key, answer of the terminal or piece of a paste at a time."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Read(Protocol):
        """Reads more input; without `wait` only what has arrived, or arrives within `limit_s`."""

        def __call__(self, *, wait: bool, limit_s: float = ...) -> bytes | None:
            """Return the next bytes typed; `None` if the leg ended meanwhile, or nothing was typed."""


ESCAPE = b"\x1b"
PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"
_LONGEST_SEQUENCE = 4096
_CHARACTER = rb"[\xc2-\xf4][\x80-\xbf]{1,3}|[^\x1b]"
# Answers that are strings; any other key with Alt begins like them and is two bytes.
_STRING = rb"\][0-9]+;|P[0-9;]*[!$+>]|_G"
_UNIT = re.compile(
    rb"%b|\x1b(?:\[M...|\[[0-?]*[ -/]*[@-~]|O.|(?:%b)[^\x00-\x1f]*(?:\x07|\x1b\\|(?=[\x00-\x1a\x1c-\x1f])"
    rb"|(?=\x1b[^\\]))|(?!%b)[\]P_^]|(?![\[O\]P_^])(?:%b)|(?=\x1b))"
    % (_CHARACTER, _STRING, _STRING, _CHARACTER),
    re.DOTALL,
)
_PASTED = re.compile(rb"\x1b\[201~|[^\x1b]+|\x1b(?!\Z|\[\Z|\[2\Z|\[20\Z|\[201\Z)")


class PromptInput:
    """Input in units, read when needed; `in_paste` tells whether the next unit is within a paste."""

    __slots__ = ("_at", "_pending", "_read", "in_paste")

    def __init__(self, read: "Read") -> None:
        self._read = read
        self._pending = b""
        self._at = 0
        self.in_paste = False

    @property
    def is_empty(self) -> bool:
        """True if everything that was read has been taken."""
        return self._at == len(self._pending)

    def push(self, typed: bytes) -> None:
        """Append `typed`, which was read elsewhere, to what was read and not taken."""
        # What was taken is cut off here and not with every key: a pasted megabyte is a million keys.
        self._pending = self._pending[self._at :] + typed
        self._at = 0

    def take(self) -> bytes | None:
        """Return a character, whole escape sequence or piece of a paste; `None` if the leg ended meanwhile.

        An incomplete sequence is waited for, but Escape alone is a key.
        """
        while True:
            end = self._find_end()
            if end > self._at:
                unit, self._at = self._pending[self._at : end], end
                self.in_paste = unit == PASTE_BEGIN or (self.in_paste and unit != _PASTE_END)
                return unit
            data = self._read(wait=True)
            if data is None:
                return None
            self.push(data)

    def _find_end(self) -> int:
        """Return the end of the next unit, or the current position while the rest of it is missing."""
        found = (_PASTED if self.in_paste else _UNIT).match(self._pending, self._at)
        if found is not None and found.end() > self._at:
            return found.end()
        left = len(self._pending) - self._at
        is_key = left == 1 and not self.in_paste and self._pending.endswith(ESCAPE)
        return len(self._pending) if is_key or left > _LONGEST_SEQUENCE else self._at

    def take_within(self, limit_s: float) -> bytes:
        """Return what was typed and not taken, complete or not; if nothing was, what comes in `limit_s`."""
        taken = self._take_pending()
        return taken or self._read(wait=False, limit_s=limit_s) or b""

    def take_rest(self) -> bytes:
        """Return everything typed so far and not taken, complete or not."""
        return self._take_pending() + (self._read(wait=False) or b"")

    def _take_pending(self) -> bytes:
        taken = self._pending[self._at :]
        self._pending, self._at = b"", 0
        return taken
