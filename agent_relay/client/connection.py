"""A connection to the daemon: requests with a time limit, and notices.

Hot commands import this module: what it loads beyond Python itself is the C socket.
"""

import os
import select
import time

from agent_relay import __version__
from agent_relay.domain.errors import DaemonUnreachableError, UntrustedDataError
from agent_relay.domain.names import is_newer
from agent_relay.domain.protocol.wire import (
    LINE_LIMIT_BYTES,
    NOTICE_STOPPING,
    OP_SUBSCRIBE,
    WIRE_VERSION,
    build_hello,
    parse_line,
    parse_refusal,
    render_line,
)
from agent_relay.system.net.unix_sockets import connect, peer_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    from collections.abc import Callable, Iterator
    from typing import Self

    from agent_relay.system.disk.folders import Folders

HELLO_LIMIT_S = 10.0
"""Longest wait for a greeting, in seconds: a starting daemon answers once it has taken up its sessions."""
ANSWER_LIMIT_S = 30.0
_PART_BYTES = 1 << 16
_UPGRADE = f"This agent-relay ({__version__}) is older than the daemon: use the one that started it"
_RESTART = "Run: agent-relay daemon restart"
_OTHER_HOME = (
    "To run a separate daemon, set AGENT_RELAY_HOME to a folder; to stop the other daemon, run: kill"
)


class NobodyListensError(DaemonUnreachableError):
    """No daemon is running, or the one that was is stopping; starting one may help."""


class OtherProtocolError(DaemonUnreachableError):
    """The daemon speaks another protocol; `daemon` is its version, `pid` its process."""

    def __init__(self, sentence: str, *, hint: str = "", daemon: str = "", pid: int = 0) -> None:
        super().__init__(sentence, hint=hint)
        self.daemon = daemon
        self.pid = pid


class DaemonStoppingError(NobodyListensError):
    """The daemon was stopped in order: it says so, or left a mark. One that was killed can do neither."""


def _do_nothing() -> None:
    """Do nothing while the daemon works."""


class Connection:
    """A greeted connection to the daemon; `daemon` is its version, `pid` its process. Not thread-safe.

    Notices that arrive while an answer is awaited are kept: after a `request`, call `take_notices` before
    waiting for `fileno`.
    """

    def __init__(self, sock: "_socket.socket") -> None:
        self._sock = sock
        self._buffer = bytearray()
        self._notices: list[dict[str, object]] = []
        self._number = 0
        self._lost = ""
        self.daemon = ""
        self.pid = 0

    @classmethod
    def open(cls, folders: "Folders", *, limit_s: float = HELLO_LIMIT_S) -> "Self":
        """Connect to the daemon and say hello.

        Raises NobodyListensError if no daemon is running, DaemonStoppingError if it is stopping,
        DaemonUnreachableError if it does not answer within `limit_s`, speaks another protocol or uses the
        configuration or state of another home, ConfigurationError if its folder is not private.
        """
        deadline = time.monotonic() + limit_s
        try:
            sock = connect(folders.daemon_socket, timeout_s=limit_s)
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            raise NobodyListensError("no daemon is running", hint="Run: agent-relay daemon start") from None
        except (TimeoutError, OSError) as error:
            raise DaemonUnreachableError(f"cannot reach the daemon: {error}", hint=_RESTART) from error
        found, is_greeted = cls(sock), False
        try:
            _check_place(folders, found._hello(deadline), found.pid)
            is_greeted = True
        finally:
            if not is_greeted:
                found.close()
        return found

    def request(self, op: str, /, *, limit_s: float = ANSWER_LIMIT_S, **fields: object) -> dict[str, object]:
        """Send one operation and return its answer.

        Raises the RelayError the daemon answered with, its class, sentence and hint kept; or
        DaemonUnreachableError if no answer comes within `limit_s` or the daemon goes away, after which this
        connection cannot be used any more.
        """
        return self.request_while(_do_nothing, op, limit_s=limit_s, **fields)

    def request_while(
        self, work: "Callable[[], None]", op: str, /, *, limit_s: float = ANSWER_LIMIT_S, **fields: object
    ) -> dict[str, object]:
        """Send a request as `request` does, and call `work` here while the daemon does its own."""
        self._number += 1
        deadline = time.monotonic() + limit_s
        self._send(render_line({"op": op, "id": self._number, **fields}), deadline)
        work()
        while True:
            message = self._next(deadline, f"{op} was not answered")
            if message.get("id") in (self._number, None) and "ok" in message:
                break
            if "notice" in message:
                self._notices.append(message)
        if message["ok"] is not True:
            raise parse_refusal(message)
        return message

    def subscribe(self) -> None:
        """Ask the daemon to send notices over this connection from now on."""
        self.request(OP_SUBSCRIBE)

    def notices(self, *, limit_s: float | None = None) -> "Iterator[dict[str, object]]":
        """Yield notices as they come, `{"notice": "session", "session": id}`, `*` meaning any session.

        Ends after `limit_s` seconds without one (`None`: waits as long as the daemon lives) and when the
        daemon stops. Raises DaemonUnreachableError if it dies. Call `subscribe` first.
        """
        while True:
            if not self._notices:
                ready = select.select([self._sock], [], [], 0 if self._has_line() else limit_s)[0]
                if not ready and not self._has_line():
                    return
            for notice in self.take_notices():
                if notice.get("notice") == NOTICE_STOPPING:
                    return
                yield notice

    def take_notices(self) -> list[dict[str, object]]:
        """Return the notices that have arrived, without waiting; for loops that watch `fileno` themselves.

        Raises DaemonUnreachableError if the daemon went away.
        """
        if not self._has_line() and not self._notices:
            self._check()
        while self._has_line() or self._fill():
            message = self._next(time.monotonic(), "a notice did not come")
            if "notice" in message:
                self._notices.append(message)
        taken, self._notices = self._notices, []
        return taken

    def fileno(self) -> int:
        """Return the descriptor to watch for notices."""
        return self._sock.fileno()

    def close(self) -> None:
        """Close the connection; harmless when repeated."""
        self._lost = self._lost or "the connection is closed"
        self._sock.close()

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hello(self, deadline: float) -> dict[str, object]:
        """Greet the daemon and return its answer. Raise what `open` does."""
        self._send(render_line(build_hello(__version__)), deadline)
        answer = self._next(deadline, "the daemon did not say hello")
        if answer.get("notice") == NOTICE_STOPPING:
            self.close()
            raise DaemonStoppingError("the daemon is stopping", hint="Try again.")
        version, pid = answer.get("daemon"), answer.get("pid")
        self.daemon = version if isinstance(version, str) else ""
        self.pid = pid if isinstance(pid, int) else peer_of(self._sock)[0]
        if answer.get("ok") is True:
            return answer
        refusal = parse_refusal(answer)
        if answer.get("version") in {None, WIRE_VERSION}:
            raise refusal
        # A newer daemon is not ours to end: whoever upgraded wants that one.
        hint = _UPGRADE if is_newer(self.daemon, __version__) else refusal.hint
        raise OtherProtocolError(refusal.sentence, hint=hint, daemon=self.daemon, pid=self.pid)

    def _has_line(self) -> bool:
        return b"\n" in self._buffer

    def _fill(self) -> bool:
        """Read what can be read at once; return whether the buffer has a whole line.

        The daemon's end is raised only after everything it sent before was taken.
        """
        while not self._lost and not self._has_line() and select.select([self._sock], [], [], 0)[0]:
            try:
                self._receive()
            except NobodyListensError:
                if not self._notices:
                    raise
        return self._has_line()

    def _send(self, line: bytes, deadline: float) -> None:
        self._check()
        self._sock.settimeout(max(0.001, deadline - time.monotonic()))
        try:
            self._sock.sendall(line)
        except TimeoutError:
            raise self._late("the daemon takes no more requests") from None
        except OSError:
            # A daemon that turned us away has closed its side, but its reason can still be read.
            if not self._has_line():
                self._receive()

    def _next(self, deadline: float, what: str) -> dict[str, object]:
        if not self._has_line():
            self._check()
        while (end := self._buffer.find(b"\n")) < 0:
            if len(self._buffer) > LINE_LIMIT_BYTES:
                self.close()
                raise UntrustedDataError("the daemon's answer has no end", hint=_RESTART)
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._sock], [], [], left_s)[0]:
                raise self._late(what)
            self._receive()
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        return parse_line(line)

    def _receive(self) -> None:
        try:
            part = self._sock.recv(_PART_BYTES)
        except OSError:
            part = b""
        if not part:
            raise self._gone()
        self._buffer += part

    def _check(self) -> None:
        if self._lost:
            raise DaemonUnreachableError(self._lost)

    def _late(self, what: str) -> DaemonUnreachableError:
        self.close()
        self._lost = f"{what} in time"
        return DaemonUnreachableError(self._lost, hint="See: agent-relay daemon logs")

    def _gone(self) -> NobodyListensError:
        self.close()
        self._lost = "the daemon went away"
        return NobodyListensError(self._lost, hint="Try again; see: agent-relay daemon logs")


def check_home(folders: "Folders", pid: int) -> None:
    """Check by its environment that the daemon `pid` is not another home's. Raise DaemonUnreachableError.

    One that hangs, or speaks another protocol, cannot be asked.
    """
    from agent_relay.system.disk.folders import get_folders
    from agent_relay.system.processes import read_environ

    environ = read_environ(pid)
    if environ:
        theirs = get_folders(environ)
        _check_place(folders, {"config": theirs.config, "state": theirs.state}, pid)


def _check_place(folders: "Folders", answer: "dict[str, object]", pid: int) -> None:
    """Check that the daemon uses our configuration and state. Raise DaemonUnreachableError.

    Two homes of one user may share a runtime folder. An older daemon does not say where its files are.
    """
    for what, ours in (("config", folders.config), ("state", folders.state)):
        theirs = answer.get(what)
        if not isinstance(theirs, str) or theirs == ours:
            continue
        if os.path.realpath(theirs) != os.path.realpath(ours):
            raise DaemonUnreachableError(
                f"the daemon in {folders.runtime} uses {theirs}, not {ours}", hint=f"{_OTHER_HOME} {pid}"
            )


def find_daemon_pid(folders: "Folders", *, limit_s: float = 2.0) -> int | None:
    """Return the pid of the process that listens, as the kernel reports it; `None` if there is none.

    Works whatever protocol the process speaks. Raises DaemonUnreachableError if it does not accept within
    `limit_s`.
    """
    try:
        sock = connect(folders.daemon_socket, timeout_s=limit_s)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        return None
    except TimeoutError as error:
        raise DaemonUnreachableError(f"cannot reach the daemon: {error}", hint=_RESTART) from error
    try:
        pid, _ = peer_of(sock)
    finally:
        sock.close()
    return pid if os.path.exists(f"/proc/{pid}") else None
