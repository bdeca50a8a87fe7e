"""Keys that were held, on their way to the agent: a piece at a time, each read before the next is typed."""

import time
from collections import deque

from agent_relay.logic.held_keys import find_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.system.holder.loop import Loop
    from agent_relay.system.holder.terminal import Terminal

    Give = Callable[[Terminal, bytes, bool], None]

# After so much of pauses the rest is typed at once: a key that was leaned on must not keep a person waiting.
_PAUSES_S = 10.0
# An agent that is busy starting has been seen to read nothing for seconds; one that reads nothing at all gets
# the rest as it would from any terminal.
_UNREAD_S = 10.0
_LOOK_S = 0.02
# An agent acts on a key a few rounds of its loop after it read it, and reads on meanwhile: opencode defers
# Enter twice. How long it takes to read tells how long a round takes where a machine has too much to do.
_ROUNDS = 4
_LONGEST_S = 2.0


class PacedKeys:
    """The pieces of all terminals of a leg, in the order in which they are typed.

    `give(terminal, piece, in_paste)` types one, `has_read()` is whether the agent has read all that was
    typed, and `given(terminal)` is called when nothing of that terminal waits any more.
    """

    __slots__ = (
        "_before",
        "_due",
        "_give",
        "_given",
        "_has_read",
        "_is_typing",
        "_left_s",
        "_loop",
        "_pieces",
        "_read_s",
    )

    def __init__(
        self, loop: "Loop", give: "Give", has_read: "Callable[[], bool]", given: "Callable[[Terminal], None]"
    ) -> None:
        self._loop = loop
        self._give = give
        self._has_read = has_read
        self._given = given
        self._pieces: deque[tuple[Terminal, bytes, bool]] = deque()
        self._is_typing = False
        self._before = b""
        self._left_s = 0.0
        self._due = 0.0
        self._read_s = 0.0

    @property
    def size(self) -> int:
        """How many bytes wait."""
        return sum(len(piece) for _, piece, _ in self._pieces)

    def waits(self, terminal: "Terminal") -> bool:
        """Whether something of that terminal waits."""
        return any(source is terminal for source, _, _ in self._pieces)

    def put(self, terminal: "Terminal", pieces: "list[bytes]", *, in_paste: bool) -> None:
        """Type these pieces after those that wait; the last of them leaves the terminal `in_paste`."""
        is_first = not self._pieces
        last = len(pieces) - 1
        self._pieces += [(terminal, piece, in_paste and at == last) for at, piece in enumerate(pieces)]
        if is_first and not self._is_typing:
            self._stop()
            self._before, self._left_s, self._read_s = b"", _PAUSES_S, 0.0
            self._type()

    def take(self, terminal: "Terminal") -> bytes:
        """Return what waits of that terminal; none of it is typed any more."""
        taken = b"".join(piece for source, piece, _ in self._pieces if source is terminal)
        self._pieces = deque(entry for entry in self._pieces if entry[0] is not terminal)
        return taken

    def _stop(self) -> None:
        self._loop.cancel(self)
        self._loop.cancel((self, "next"))

    def _type(self) -> None:
        """Type the next piece; all of them once there have been too many."""
        self._is_typing = True
        try:
            while self._pieces:
                terminal, piece, in_paste = self._pieces.popleft()
                self._give(terminal, piece, in_paste)
                if not self.waits(terminal):
                    self._given(terminal)
                self._before = piece
                if self._left_s > 0:
                    break
        finally:
            self._is_typing = False
        if self._pieces:
            self._due = time.monotonic() + _UNREAD_S
            self._loop.after(self, _LOOK_S, self._look)

    def _look(self) -> None:
        """Have the next piece typed a pause after the last one was read."""
        if not self._pieces:
            return
        left_s, has_read = self._due - time.monotonic(), self._has_read()
        if not has_read and left_s > 0:
            self._loop.after(self, _LOOK_S, self._look)
            return
        if not has_read:
            self._left_s = 0.0
        self._read_s = max(self._read_s, _UNREAD_S - left_s - _LOOK_S)
        pause_s = find_pause(self._before, self._pieces[0][1])
        self._left_s -= pause_s
        pause_s = max(pause_s, min(_ROUNDS * self._read_s, _LONGEST_S))
        self._loop.after((self, "next"), pause_s, self._type)
