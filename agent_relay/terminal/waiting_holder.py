"""Start the programs of holders, keep one waiting for the next leg, and send it its spec."""

import contextlib
import os
import signal
import socket
import sys
import threading
import time

from agent_relay.system.spawn import give_streams, spawn_program
from agent_relay.terminal.holder.wire import list_descriptors

TYPE_CHECKING = False

if TYPE_CHECKING:
    from agent_relay.terminal.holder.wire import HolderSpec

ENTRY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "holder", "entry.py")
_PIECE = 1 << 16


def build_command(*, python: str = sys.executable, entry: str = ENTRY) -> list[str]:
    """Return the command that starts a holder, which reads its spec on standard input."""
    # Without -X utf8 a holder under another locale would read names written here differently.
    return [python, "-I", "-S", "-X", "utf8", entry]


class WaitingHolder:
    """A holder's program that has loaded all it needs and waits for its spec. For one thread at a time.

    It ends when this process does. Creating one raises OSError if it cannot be started.
    """

    def __init__(self, *, python: str = sys.executable) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                streams = give_streams(theirs.fileno(), theirs.fileno(), None)
                self._pid = spawn_program(python, build_command(python=python), {}, actions=streams)
            except OSError:
                ours.close()
                raise
        self._connection = ours

    def hold(self, order: bytes, spec: "HolderSpec", *, limit_s: float) -> bytes | None:
        """Send the `order`, its spec as bytes; return the line it answers, empty if its holder ended.

        `None` if it ended before there was a holder, so that no agent was started. It gets copies of the
        spec's descriptors. It cannot be used again afterwards, whatever the outcome. Raise TimeoutError if no
        answer comes within `limit_s`.
        """
        try:
            said = self._ask(order, list_descriptors(spec), limit_s)
        except TimeoutError:
            os.kill(self._pid, signal.SIGKILL)
            raise
        except OSError:
            said = b""
        finally:
            self._connection.close()
            _, status = os.waitpid(self._pid, 0)
        # It ends with 0 once it has forked the holder.
        return said if said or status == 0 else None

    def end(self) -> None:
        """Kill the waiting program, even if it is stopped or too busy to see the connection's end."""
        os.kill(self._pid, signal.SIGKILL)
        self._connection.close()
        os.waitpid(self._pid, 0)

    def _ask(self, order: bytes, descriptors: list[int], limit_s: float) -> bytes:
        ends_at = time.monotonic() + limit_s
        self._connection.settimeout(limit_s)
        socket.send_fds(self._connection, [b" "], descriptors)
        self._connection.sendall(order)
        self._connection.shutdown(socket.SHUT_WR)
        said = b""
        while not said.endswith(b"\n"):
            self._connection.settimeout(max(0.001, ends_at - time.monotonic()))
            if not (part := self._connection.recv(_PIECE)):
                break
            said += part
        return said


_LOCK = threading.Lock()
_SPARES: list[WaitingHolder] = []
"""The one program that waits in this process, if there is one."""


def prepare_spare() -> None:
    """Have a program wait for the next leg. If none can be started, that leg's start takes longer."""
    with _LOCK, contextlib.suppress(OSError):
        if not _SPARES:
            _SPARES.append(WaitingHolder())


def take_spare() -> WaitingHolder | None:
    """Return the waiting program, which is the caller's from now on; `None` if there is none."""
    with _LOCK:
        return _SPARES.pop() if _SPARES else None


def end_spare() -> None:
    """End the waiting program; harmless if there is none."""
    if (waiting := take_spare()) is not None:
        waiting.end()
