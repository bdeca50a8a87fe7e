"""A terminal operated by hand: what it takes, what it sends and when is the test's to say."""

import socket

from tests.support.legs import Wire


class Seat:
    """A terminal by hand: what is sent is what it sends, answers and keys alike."""

    def __init__(self, folder: str, rows: int) -> None:
        self.wire = Wire(folder)
        self.ours, theirs = socket.socketpair()
        self.ours.settimeout(60)
        self.seen = b""
        answer = self.wire.ask("attach", (theirs.fileno(),), rows=rows, cols=80, relay_key=0x1D)
        assert answer["ok"], answer
        theirs.close()

    def wait_for(self, text: bytes) -> None:
        """Read until the leg wrote this."""
        while text not in self.seen:
            data = self.ours.recv(1 << 16)
            assert data, self.seen
            self.seen += data

    def close(self) -> None:
        """The terminal and its client are gone."""
        self.ours.close()
        self.wire.sock.close()
