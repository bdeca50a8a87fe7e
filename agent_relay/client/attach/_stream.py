"""Bytes between our standard streams and a socket pair, where the terminal itself cannot be passed."""

import _socket
import os
import select

READ_BYTES = 64 << 10
_LAST_WORDS_S = 1.0


class Stream:
    """Copies input to a socket pair and output from it; `passed` is the end to pass on to the holder.

    While it is `covered`, output is dropped: something else is shown, and a repaint follows.
    """

    def __init__(self, source: int, target: int) -> None:
        ours, theirs = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
        self._pair = ours
        self._pair.setblocking(False)
        self.passed = theirs
        self._source = source
        self._target = target
        self._waiting = b""
        self._ended = False
        self.held = False
        self.covered = False

    def hold(self) -> bytes:
        """Read and show nothing until `held` is false again; return what was read but not sent."""
        self.held = True
        return self.take_waiting()

    def take_waiting(self) -> bytes:
        """Return what was read but not sent, and drop it here."""
        waiting, self._waiting = self._waiting, b""
        return waiting

    def register(self, poll: "select.poll") -> None:
        """Register what to wait for now: input only if everything read before was sent."""
        if self._pair.fileno() >= 0:
            writable = select.POLLOUT if self._waiting and not self._ended else 0
            poll.register(self._pair.fileno(), select.POLLIN | writable)
        if not self._ended and not self._waiting and not self.held:
            poll.register(self._source, select.POLLIN)
        else:
            try:
                poll.unregister(self._source)
            except KeyError:
                return

    def serve(self, fd: int, ready: int) -> None:
        """Handle a descriptor that is ready."""
        if fd == self._source:
            self._take()
        elif fd == self._pair.fileno():
            if ready & select.POLLOUT:
                self._give()
            if ready & ~select.POLLOUT:
                self.show()

    def _take(self) -> None:
        try:
            self._waiting = os.read(self._source, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._waiting = b""
        if self._waiting:
            self._give()
        else:
            self._ended = True
            self._pair.shutdown(_socket.SHUT_WR)

    def _give(self) -> None:
        try:
            self._waiting = self._waiting[self._pair.send(self._waiting) :]
        except BlockingIOError:
            return
        except OSError:
            # The agent has ended: what it did not get is for the next one.
            self._ended = True

    def show(self) -> bool:
        """Write output of the agent; return whether more may come."""
        try:
            data = self._pair.recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        if not data:
            return False
        if not (self.held or self.covered):
            write_all(self._target, data)
        return True

    def finish(self) -> None:
        """Write the rest of the agent's output and close the pair. The other end should be closed by then."""
        # The holder's last words to the terminal come even behind the relay prompt.
        self.held = self.covered = False
        self._pair.settimeout(_LAST_WORDS_S)
        while self.show():
            pass
        self._pair.close()
        self.passed.close()


def write_all(fd: int, data: bytes) -> None:
    """Write all of `data`, even to a descriptor somebody made non-blocking; raise OSError if that fails."""
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            poll = select.poll()
            poll.register(fd, select.POLLOUT)
            poll.poll()
