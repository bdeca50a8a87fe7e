"""A terminal with the bar, which must be there after every piece of what the terminal was sent."""

import contextlib
import select
import socket
import time
from collections.abc import Callable

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support.legs import LIMIT_S, Wire

# Smaller than what is sent at once, so that most pieces end in the middle of a picture.
_PIECE_BYTES = 997


class BarSeat:
    """A terminal of that size on a leg, by a socket pair. `counted` pieces were looked at for the bar."""

    def __init__(self, folder: str, *, rows: int = 24, cols: int = 80, **fields: object) -> None:
        self.folder = folder
        self.wire = Wire(folder)
        self.ours, theirs = socket.socketpair()
        self.emulator = Emulator(find_library() or "", cols, rows)
        self.bar = ""
        self.counted = 0
        self.received = bytearray()
        request = {"rows": rows, "cols": cols, "relay_key": 0x1D, **fields}
        answer = self.wire.ask("attach", (theirs.fileno(),), **request)
        assert answer["ok"], answer
        theirs.close()

    @property
    def lowest(self) -> str:
        """The bottom line."""
        return self.emulator.text()[-1]

    def look(self, wait_s: float = 0.01) -> None:
        """Take a piece of what was sent; while `bar` is set, the bottom line must be that alone."""
        if not select.select([self.ours], [], [], wait_s)[0]:
            return
        data = self.ours.recv(_PIECE_BYTES)
        assert data, "the terminal was let go"
        self.received += data
        self.emulator.feed(data)
        self.emulator.take_replies()
        if self.bar:
            self.counted += 1
            assert self.lowest == self.bar, "\n".join(self.emulator.text())

    def wait_until(self, seen: Callable[[], bool], what: str) -> None:
        """Look until something is so."""
        deadline = time.monotonic() + LIMIT_S
        while not seen():
            assert time.monotonic() < deadline, f"waited for {what}; it shows:\n" + self.text()
            self.look()

    def text(self) -> str:
        """What it shows."""
        return "\n".join(self.emulator.text())

    def wait_for(self, text: str) -> None:
        """Look until it shows `text`."""
        self.wait_until(lambda: text in self.text(), repr(text))

    def wait_for_bar(self, text: str) -> None:
        """Look until the bottom line is `text`, and from then on let it be nothing else."""
        self.bar = ""
        self.wait_until(lambda: self.lowest == text, f"the bar {text!r}")
        self.bar = text

    def type(self, data: bytes) -> None:
        """Send it, as much as is taken, looking meanwhile."""
        self.ours.setblocking(False)
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[self.ours.send(data) :]
            self.look(0)
        self.ours.setblocking(True)

    def resize(self, rows: int, cols: int) -> None:
        """Change its size, as a window does."""
        self.emulator.resize(cols, rows)
        assert self.wire.ask("resize", rows=rows, cols=cols)["ok"]

    def close(self) -> None:
        """It is gone, and its client."""
        self.ours.close()
        self.wire.sock.close()
        self.emulator.close()
