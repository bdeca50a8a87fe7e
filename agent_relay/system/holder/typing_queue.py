"""Bytes on their way to the child: whole, in order, and one paste at a time."""

import os
import termios

from agent_relay.system.holder.loop import IN, OUT, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
        """How many bytes wait."""
        return len(self._data) + sum(len(data) for _, data, _ in self._waiting)

    def may_read(self, source: object) -> bool:
        """Whether this source's terminal should be read now."""
        return len(self._data) <= FULL_BYTES and self._owner in (None, source)

    def read_output(self, *, wanted: bool) -> None:
        """Whether the child's output is to be read; it shares the master's place in the loop."""
        self._reading = wanted
        self._rearm()

    def put(self, source: object, data: bytes, *, in_paste: bool) -> None:
        """Send `data` to the child; while another source is within a paste it waits for the paste's end.

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
        """The source is gone: what it owned is free, what it had sent still goes."""
        if self._owner is source:
            self._own(None)

    def end_of_file(self, source: object) -> None:
        """Say end of input as a person would, to a program that reads lines; others are left alone."""
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
        """The master takes input again."""
        was_full = len(self._data) > FULL_BYTES
        del self._data[: self._write(self._data)]
        self._rearm()
        if was_full and len(self._data) <= FULL_BYTES:
            self._changed()

    def close(self) -> None:
        """The child is gone; nothing is sent any more."""
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
