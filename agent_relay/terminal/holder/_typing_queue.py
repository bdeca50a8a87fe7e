"""Bytes on their way to the child: whole, in order, one paste at a time, and held keys at a person's pace.

Keys that were held are typed a piece at a time, and each is read before the next one is typed.
"""

import os
import termios
import time
from collections import deque

from agent_relay.terminal.holder._event_loop import IN, OUT, Loop
from agent_relay.terminal.keystrokes import find_pause

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.terminal.holder._terminal import Terminal

    Give = Callable[[Terminal, bytes, bool], None]


# Above this, terminals are not read until the child has taken some: a paste of any size waits in the kernel.
FULL_BYTES = 64 << 10
# What programs may queue beyond that before they are refused; terminals never come here.
REFUSED_BYTES = 8 << 20
# A paste whose end does not come must not lock others out for good.
_PASTE_IDLE_S = 2.0


class TypingQueue:
    """The input of one PTY master. `changed()` is called when somebody's turn to be read may have changed."""

    __slots__ = ("_changed", "_data", "_last", "_loop", "_master", "_owner", "_reading", "_waiting", "closed")

    def __init__(self, loop: Loop, master: int, changed: "Callable[[], None]") -> None:
        self._loop = loop
        self._master = master
        self._changed = changed
        self._data = bytearray()
        self._waiting: list[tuple[object, bytes, bool]] = []
        self._owner: object | None = None
        self._reading = True
        self._last = b"\n"
        self.closed = False

    @property
    def size(self) -> int:
        """Number of bytes that wait."""
        return len(self._data) + sum(len(data) for _, data, _ in self._waiting)

    def may_read(self, source: object) -> bool:
        """Return whether this source's terminal should be read now."""
        return len(self._data) <= FULL_BYTES and self._owner in (None, source)

    def read_output(self, *, wanted: bool) -> None:
        """Set whether the child's output is read; it shares the master's place in the loop."""
        self._reading = wanted
        self._rearm()

    def put(self, source: object, data: bytes, *, in_paste: bool) -> None:
        """Send `data` to the child; while another source is within a paste, wait for the end of that.

        `in_paste` is whether the source is within a bracketed paste after these bytes.
        """
        if self.closed:
            return
        if self._owner not in (None, source):
            self._waiting.append((source, data, in_paste))
            return
        was_full = len(self._data) > FULL_BYTES
        if data:
            self._last = data[-1:]
            if not self._data:
                data = data[self._write(data) :]
            if data:
                self._data += data
                self._rearm()
        if in_paste or self._owner is not None:
            self._own(source if in_paste else None)
        if was_full != (len(self._data) > FULL_BYTES):
            self._changed()

    def _own(self, source: object | None) -> None:
        self._loop.cancel(self)
        before, self._owner = self._owner, source
        if source is not None:
            self._loop.after(self, _PASTE_IDLE_S, lambda: self._own(None))
        else:
            waiting, self._waiting = self._waiting, []
            for entry in waiting:
                self.put(entry[0], entry[1], in_paste=entry[2])
        if before is not source:
            self._changed()

    def leave(self, source: object) -> None:
        """Free what the source owned; what it had sent is still delivered."""
        if self._owner is source:
            self._own(None)

    def end_of_file(self, source: object) -> None:
        """Send end of input as a person would, to a program that reads lines; leave others alone."""
        try:
            modes = termios.tcgetattr(self._master)
        except termios.error:
            return
        if modes[3] & termios.ICANON:
            mark = modes[6][termios.VEOF]
            # Within a line the first one only hands over what was typed so far.
            times = 1 if self._last in b"\r\n" else 2
            self.put(source, (mark if isinstance(mark, bytes) else bytes((mark,))) * times, in_paste=False)
            self._last = b"\n"

    def flush(self) -> None:
        """Write what waits: the master takes input again."""
        was_full = len(self._data) > FULL_BYTES
        del self._data[: self._write(self._data)]
        self._rearm()
        if was_full and len(self._data) <= FULL_BYTES:
            self._changed()

    def close(self) -> None:
        """Drop what waits and send nothing any more: the child is gone."""
        self.closed = True
        self._data.clear()
        self._waiting.clear()
        self._loop.cancel(self)

    def _write(self, data: "bytes | bytearray") -> int:
        try:
            return os.write(self._master, data)
        except BlockingIOError:
            return 0
        except OSError:
            return len(data)

    def _rearm(self) -> None:
        if not self.closed:
            self._loop.want(self._master, IN * self._reading | OUT * bool(self._data))


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
    """The held pieces of all terminals of a leg, in the order in which they are typed.

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
        """Number of bytes that wait."""
        return sum(len(piece) for _, piece, _ in self._pieces)

    def waits(self, terminal: "Terminal") -> bool:
        """Return whether something of that terminal waits."""
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
        """Remove and return what waits of that terminal, without typing it."""
        taken = b"".join(piece for source, piece, _ in self._pieces if source is terminal)
        self._pieces = deque(entry for entry in self._pieces if entry[0] is not terminal)
        return taken

    def _stop(self) -> None:
        self._loop.cancel(self)
        self._loop.cancel((self, "next"))

    def _type(self) -> None:
        """Type the next piece; all of them once the pauses have taken too long."""
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
