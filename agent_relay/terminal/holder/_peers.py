"""Control connections: frames in, answers and events out; garbage ends only the connection it came on."""

import _socket
import os
import struct

from agent_relay.terminal.holder._event_loop import GONE, IN, OUT, Loop
from agent_relay.terminal.holder.wire import FrameError, FrameReader, render_frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from agent_relay.terminal.holder._event_loop import Faults
    from agent_relay.terminal.holder._terminal import Terminal

_BACKLOG = 64
_READ_BYTES = 64 << 10
_DESCRIPTORS = 4
# A peer that does not read its answers is dropped, not remembered.
_UNREAD_BYTES = 8 << 20


class HolderPeer:
    """One control connection: a daemon's or a client's. `terminal` is the one it attached, if any."""

    __slots__ = ("_out", "_peers", "_reader", "fd", "fds", "sock", "terminal", "watching")

    def __init__(self, peers: "Peers", sock: _socket.socket) -> None:
        self._peers = peers
        self._reader = FrameReader()
        self._out = bytearray()
        self.sock = sock
        self.fd = sock.fileno()
        self.fds: list[int] = []
        self.watching = False
        self.terminal: Terminal | None = None

    def send(self, message: dict[str, object]) -> None:
        """Queue the message; drop the peer if it leaves too much unread or is gone."""
        if self.fd < 0:
            return
        try:
            self._out += render_frame(message)
        except FrameError as error:
            self._out += render_frame({"id": message.get("id"), "ok": False, "error": str(error)})
        self.flush()

    def flush(self) -> None:
        """Send what can be sent."""
        try:
            del self._out[: self.sock.send(self._out)]
        except BlockingIOError:
            pass
        except OSError:
            self._peers.drop(self)
            return
        if len(self._out) > _UNREAD_BYTES:
            self._peers.drop(self)
        else:
            self._peers.loop.want(self.fd, IN | OUT * bool(self._out))

    def receive(self) -> list[dict[str, object]] | None:
        """Return the messages that arrived, `None` at the end; add descriptors passed with them to `fds`.

        Raise FrameError for garbage.
        """
        space = _socket.CMSG_SPACE(_DESCRIPTORS * struct.calcsize("i"))
        try:
            data, ancillary, _, _ = self.sock.recvmsg(_READ_BYTES, space, _socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            return []
        except OSError:
            return None
        for level, kind, body in ancillary:
            if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
                count = len(body) // struct.calcsize("i")
                self.fds += struct.unpack(f"{count}i", body[: count * struct.calcsize("i")])
        # Whoever passes more than any operation takes would use up all we may have open.
        while len(self.fds) > _DESCRIPTORS:
            os.close(self.fds.pop(0))
        return self._reader.feed(data) if data else None

    def drop_descriptors(self) -> None:
        """Close the descriptors of messages that were handled; keep those of a message half received."""
        if not self._reader.is_within:
            self._close_descriptors()

    def _close_descriptors(self) -> None:
        fds, self.fds = self.fds, []
        for fd in fds:
            os.close(fd)

    def close(self) -> None:
        """Close the connection and every descriptor passed on it."""
        self.fd = -1
        self.sock.close()
        self._close_descriptors()


class Peers:
    """The listening socket in the leg's folder and its connections.

    `handle(peer, message)` is called with every message, `dropped(peer)` when a peer is gone. An error in
    serving a peer drops that peer and is noted among the `faults`.
    """

    def __init__(
        self,
        loop: Loop,
        folder: str,
        faults: "Faults",
        *,
        handle: "Callable[[HolderPeer, dict[str, object]], None]",
        dropped: "Callable[[HolderPeer], None]",
    ) -> None:
        self.loop = loop
        self.all: list[HolderPeer] = []
        self._faults = faults
        self._handle = handle
        self._dropped = dropped
        self._folder = folder
        self._listener = _listen(folder)
        loop.watch(self._listener.fileno(), IN, self._accept)

    def listen_again(self) -> None:
        """Make the deleted socket again, for new clients to find; keep the connections. Raise OSError."""
        fresh = _listen(self._folder)
        self.loop.forget(self._listener.fileno())
        self._listener.close()
        self._listener = fresh
        self.loop.watch(fresh.fileno(), IN, self._accept)

    def broadcast(self, event: dict[str, object]) -> None:
        """Send the event to every peer that watches."""
        for peer in tuple(self.all):
            if peer.watching:
                with self._faults.guard("telling a peer"):
                    peer.send(event)

    def drop(self, peer: HolderPeer) -> None:
        """Drop the peer, and with it the terminal it attached."""
        if peer in self.all:
            self.all.remove(peer)
            self.loop.forget(peer.fd)
            with self._faults.guard("closing a connection"):
                peer.close()
            with self._faults.guard("giving a terminal back"):
                self._dropped(peer)

    def _accept(self, _ready: int) -> None:
        try:
            # The public `accept` belongs to `socket`, whose import would cost a sixth of a holder's start.
            fd, _ = self._listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - see above
        except BlockingIOError:
            return
        except OSError:
            # No descriptor is left: whoever waits is still waiting then.
            self.loop.rest(self._listener.fileno())
            return
        sock = _socket.socket(fileno=fd)
        try:
            if not _is_ours(sock):
                sock.close()
                return
            sock.setblocking(False)
            peer = HolderPeer(self, sock)
            self.loop.watch(peer.fd, IN, lambda ready: self._serve(peer, ready), lambda: self.drop(peer))
        except OSError:
            sock.close()
            return
        self.all.append(peer)

    def _serve(self, peer: HolderPeer, ready: int) -> None:
        if ready & OUT:
            peer.flush()
        if ready & (IN | GONE) and peer.fd >= 0:
            try:
                messages = peer.receive()
            except FrameError:
                messages = None
            for message in messages or ():
                if peer.fd >= 0:
                    self._handle(peer, message)
            if messages is None:
                self.drop(peer)
            elif peer.fds:
                peer.drop_descriptors()


def _is_ours(sock: _socket.socket) -> bool:
    """Return whether the peer's process is our user's; the folder's mode says so too, but may be changed."""
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, size))
    return bool(uid == os.geteuid())


def _listen(folder: str) -> _socket.socket:
    """Listen on `sock` in the folder, however long its path is (sun_path has 108 bytes)."""
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK | _socket.SOCK_CLOEXEC)
    directory = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sock.bind(f"/proc/self/fd/{directory}/sock")
        os.chmod("sock", 0o600, dir_fd=directory)
        sock.listen(_BACKLOG)
    finally:
        os.close(directory)
    return sock
