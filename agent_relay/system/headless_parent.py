"""The parent of one headless program, run with `-I -S` by path: the program does not outlive the daemon.

Arguments: the descriptor of a socket whose other end only the daemon holds, then the program and its
arguments. It leads a Unix session, and its standard streams are the program's. It sends one line to the
daemon: `ended STATUS`, or `refused` and why. After that, SIGTERM ends it.
"""

import contextlib
import os
import signal
import socket
import sys
import threading

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable

ENDED, REFUSED = b"ended", b"refused"
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Parent:
    """Starts the program and reports its end. `is_over` is whether the end was reported."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.is_over = False

    def run(self, argv: list[str]) -> None:
        """Run the program and report its end to the daemon; once the daemon is gone, end the session."""
        signal.signal(signal.SIGTERM, self._leave)
        for number in (signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # else nobody could be told how the program ended
        # Before the start: what leaves the program, in a session of its own, is still a descendant of ours.
        with contextlib.suppress(ImportError, OSError, AttributeError):
            _adopt_orphans()
        end_all = _load_ending()
        defaults = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}
        try:
            pid = os.posix_spawnp(argv[0], argv, os.environ, setsigmask=[], setsigdef=defaults)
        except (OSError, ValueError) as error:
            self._tell(REFUSED, str(error).encode("utf-8", "replace")[:1000])
        else:
            threading.Thread(target=self._collect, args=(pid,), daemon=True).start()
        # A daemon that died with the news unread resets its end: it is as gone as one that closed it.
        with contextlib.suppress(OSError):
            while self._sock.recv(1):
                continue
        end_all()

    def _collect(self, pid: int) -> None:
        _, status = os.waitpid(pid, 0)
        self._tell(ENDED, b"%d" % os.waitstatus_to_exitcode(status))

    def _tell(self, what: bytes, more: bytes) -> None:
        self.is_over = True
        try:
            self._sock.sendall(what + b" " + more)
        except OSError:
            return

    def _leave(self, _number: int, _frame: object) -> None:
        # Before the program's end this is for the program: its parent stays until it is collected.
        if self.is_over:
            os._exit(0)


def _adopt_orphans() -> None:
    """Make processes whose parent ends children of this one, if the kernel can do that."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _load_ending() -> "Callable[[], None]":
    """Load what ends every process of the session and its descendants, except this one.

    At the end it is too late: the package may have been upgraded or removed since.
    """
    # -I and -S keep this start free of site-packages and of the user's environment; ours comes last.
    sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 3)[0])
    from agent_relay.system.processes import born, end_session

    def end_all() -> None:
        end_session(os.getpid(), born(os.getpid()) or 0, spare=os.getpid())

    return end_all


if __name__ == "__main__":
    handle = int(sys.argv[1])
    # The program gets its words and its streams, nothing of ours.
    os.set_inheritable(handle, False)
    with socket.socket(fileno=handle) as told:
        Parent(told).run(sys.argv[2:])
