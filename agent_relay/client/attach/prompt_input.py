"""Read what is typed at the relay prompt, a key or piece of a paste at a time; show text page by page."""

import re

from agent_relay.client.attach.tty import clean
from agent_relay.domain.text.plain import count_columns
from agent_relay.terminal.query_answers import is_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from agent_relay.client.attach.tty import UserTerminal

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


_ON = frozenset((b" ", b"\r", b"\n", b"\x1b[B", b"\x1bOB", b"\x1b[6~"))
_BACK = frozenset((b"\x7f", b"\x08", b"\x1b[A", b"\x1bOA", b"\x1b[5~"))


def show_pages(terminal: "UserTerminal", typed: "PromptInput", lines: "Sequence[str]") -> bytes:
    """Show the lines until the person has seen them; return what was typed meanwhile for the agent.

    Lines too long for the window go on in the next row. What fits is shown at the bottom until any key is
    pressed; longer text is turned page by page, and any key that turns no page ends it. Control characters
    are made harmless.
    """
    # What was typed before there was anything to see does not end it.
    left = typed.take_rest()
    at = 0
    while True:
        rows, cols = terminal.cells()
        folded = [part for line in lines for part in fold(clean(line).rstrip(), max(1, cols - 1))]
        room = max(1, rows - 1)
        at = min(at, len(folded) - 1)
        terminal.write(_paint(folded, at, room, cols))
        while (unit := typed.take()) is not None and is_answer(unit):
            left += unit
        if unit in _ON and at + room < len(folded):
            at += room
        elif unit in _BACK and len(folded) > room:
            at = max(0, at - room)
        else:
            break
    # The first mark of a paste is no key: the paste is for the agent, and whole.
    if unit is not None and typed.in_paste:
        left += unit
    return left + typed.take_rest()


def _paint(folded: "Sequence[str]", at: int, room: int, cols: int) -> bytes:
    """Return what paints the rows from `at` and, below them, what the keys do.

    If there is more than one page, the rows take the whole screen.
    """
    shown = folded[at : at + room]
    has_pages = len(folded) > room
    labels = [" any key "]
    if has_pages:
        place = f" {at + 1}-{at + len(shown)} of {len(folded)} "
        labels = [f"{place}  Space goes on   any other key returns ", " Space, any key ", *labels]
        shown = [*shown, *[""] * (room - len(shown))]
    label = next((one for one in labels if len(one) < cols), labels[-1])
    first = room + 1 - len(shown)
    painted = "".join(f"\x1b[{first + row};1H\x1b[2K{text}" for row, text in enumerate(shown))
    # Nothing may wrap in the last row: the screen would move up, and its first row into the scrollback.
    return f"\x1b[?7l\x1b[0m{painted}\x1b[{room + 1};1H\x1b[2K\x1b[7m{label[: cols - 1]}\x1b[0m".encode()


def fold(text: str, width: int) -> list[str]:
    """Return the text in pieces of at most `width` columns, cut between words if there are any."""
    parts, line, used, space = [], "", 0, 0
    for sign in text:
        columns = count_columns(sign)
        if used + columns > width and line:
            cut = space if space and sign != " " else len(line)
            parts.append(line[:cut].rstrip())
            line = line[cut:].lstrip()
            used, space = count_columns(line), 0
            if not line and sign == " ":
                continue
        line += sign
        used += columns
        if sign == " ":
            space = len(line)
    return [*parts, line]
