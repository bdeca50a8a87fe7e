"""`python -m agent_relay.daemon`: become the user's one daemon, or exit quietly if there is one."""

import gc
import importlib
import os
import sys

if not __package__:
    # Nothing that is loaded is garbage: `_serve` lets the collector begin.
    gc.disable()
    # Started by its path in isolated mode: run the very package this file belongs to, and let it hide
    # nothing else that lies beside it.
    _root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    sys.path.insert(0, _root)
    importlib.import_module("agent_relay")
    sys.path.remove(_root)
    sys.path.append(_root)

import contextlib
import logging
import signal
import socket
from typing import TYPE_CHECKING

from agent_relay import __version__
from agent_relay.domain.errors import DaemonUnreachableError, ExitCode, OurBugError, RelayError
from agent_relay.domain.protocol.wire import build_hello, build_refusal, render_line
from agent_relay.system.disk.folders import Folders, ensure_private, get_folders
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.limited_process import fork_server
from agent_relay.system.net.unix_sockets import connect, listen
from agent_relay.terminal.waiting_holder import prepare_spare

if TYPE_CHECKING:
    from agent_relay.daemon.run import OpenApp

CHECK = "--check"
"""Load everything and exit with 0: a check before this daemon takes another's place."""
DETACHED = "--detached"
"""Detach from the starter, and report readiness or the reason of failure on standard error, which then
closes."""
START_LIMIT_S = 15.0
"""Longest wait for another daemon that is starting or stopping, in seconds."""
ANSWER_LIMIT_S = 5.0
"""Longest wait, in seconds, for an answer of the daemon that holds the lock; then it counts as busy."""
LEAVE_LIMIT_S = 13.0
"""Seconds until SIGALRM ends a daemon that hangs while it stops, even in a worker thread on a dead disk."""


def main(
    arguments: list[str] | None = None,
    *,
    open_app: "OpenApp | None" = None,
    leave_limit_s: float = LEAVE_LIMIT_S,
) -> int:
    """Run the daemon; return the exit code: 0 after an orderly stop, or if another daemon serves already."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments == [CHECK]:
        _load(open_app)
        _load_rest()
        return ExitCode.DONE
    if arguments not in ([], [DETACHED]):
        sys.stderr.write(f"usage: python -m agent_relay.daemon [{DETACHED}]\n")
        return ExitCode.WRONG_USE
    if arguments:
        _detach()
    # Ignored by whoever started us it would be ignored here, and no end of a program could be waited for.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    # Blocked there, SIGTERM would end neither this process nor what is forked from it.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    starter = _Starter()
    try:
        return _serve(starter, open_app, leave_limit_s=leave_limit_s)
    except RelayError as error:
        starter.tell(render_line(build_refusal(error)))
        return error.code
    except Exception as error:  # noqa: BLE001 - the root of the process
        path = _write_crash(error)
        hint = f"A crash report without contents is in {path}" if path else ""
        failure = OurBugError("the daemon ended because of an internal error", hint=hint)
        starter.tell(render_line(build_refusal(failure)))
        return ExitCode.OUR_BUG


class _Starter:
    """The process that started us, on what was standard error before the log took over; it gets one line."""

    __slots__ = ("_handle",)

    def __init__(self) -> None:
        self._handle = os.dup(2)

    def tell(self, line: bytes) -> None:
        """Write the line and close the descriptor; a starter that went away does not matter."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            with contextlib.suppress(OSError):
                os.write(handle, line)
            os.close(handle)


def _serve(starter: _Starter, open_app: "OpenApp | None", *, leave_limit_s: float) -> int:
    folders = get_folders()
    ensure_private(folders.runtime)
    ensure_private(folders.state)
    owned = _own(folders)
    if owned is None:
        return ExitCode.DONE
    listening, lock = owned
    # It gets ready on another core while this one loads the rest.
    prepare_spare()
    # What follows is dear to import; whoever connects meanwhile waits in the socket's queue. Nothing of it is
    # garbage, and what the collector never touches, the server forked from here shares with us.
    gc.disable()
    opens = _load(open_app)
    gc.freeze()
    fork_server()
    gc.enable()
    import asyncio

    from agent_relay.daemon._log import open_log
    from agent_relay.daemon.run import run
    from agent_relay.system.clock import SystemClock

    try:
        open_log(folders.daemon_log)
    except OSError as error:
        raise RelayError(f"cannot write the log {folders.daemon_log}: {error.strerror}") from error

    def leave() -> None:
        signal.setitimer(signal.ITIMER_REAL, leave_limit_s)

    asyncio.run(
        run(
            folders,
            SystemClock(),
            open_app=opens,
            listening=listening,
            lock=lock,
            ready=lambda: starter.tell(b"ready\n"),
            leaving=leave,
        )
    )
    os.close(lock)
    return ExitCode.DONE


def _own(folders: Folders) -> tuple[socket.socket, int] | None:
    """Return the listening socket and the lock that makes it ours; `None` if another daemon serves.

    The start lock is held until we listen: its next holder finds either a daemon that listens, or one that is
    about to exit, whose end is worth waiting for. Raises RelayError if another daemon starts or ends for too
    long, or the socket cannot be made.
    """
    start = take_lock(folders.start_lock, limit_s=START_LIMIT_S)
    if start is None:
        raise _busy("another daemon has been starting for too long")
    try:
        lock = take_lock(folders.daemon_lock)
        if lock is None and _somebody_serves(folders):
            return None
        if lock is None:
            lock = take_lock(folders.daemon_lock, limit_s=START_LIMIT_S)
        if lock is None:
            raise _busy("the daemon before this one does not end")
        with contextlib.suppress(OSError):
            os.unlink(folders.stopped_mark)
        try:
            return listen(folders.daemon_socket), lock
        except OSError as error:
            raise RelayError(f"cannot listen at {folders.daemon_socket}: {error.strerror}") from error
    finally:
        os.close(start)


def _somebody_serves(folders: Folders) -> bool:
    """Tell whether the lock's owner answers, or is too busy to; a killed one listens until it is gone."""
    try:
        with contextlib.closing(connect(folders.daemon_socket, timeout_s=ANSWER_LIMIT_S)) as peer:
            peer.sendall(render_line(build_hello(__version__)))
            return bool(peer.recv(1))
    except TimeoutError:
        return True
    except OSError:
        return False


def _busy(sentence: str) -> DaemonUnreachableError:
    return DaemonUnreachableError(sentence, hint="Look at it with: agent-relay daemon status")


def _load(open_app: "OpenApp | None") -> "OpenApp":
    """Load all that a daemon is made of; return `open_app`, or else our own application's."""
    import asyncio  # noqa: F401

    import agent_relay.daemon._log
    import agent_relay.daemon.run
    import agent_relay.system.clock  # noqa: F401

    if open_app is not None:
        return open_app
    from agent_relay.daemon._application import open_app as own

    return own


def _load_rest() -> None:
    """Load what a daemon loads after its start. Raise what an import raises."""
    from agent_relay.daemon._application import build_loaders

    for load in build_loaders().values():
        load()


def _detach() -> None:
    """Go on in a child that leads no session; close whatever the starter's shell had open.

    The starter reaps its child at once, and no pipe of the user's waits for the daemon's end.
    """
    if os.fork():
        os._exit(0)
    os.chdir("/")
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:  # noqa: PLR2004 - the standard descriptors
            with contextlib.suppress(OSError):
                os.close(int(name))


def _write_crash(error: Exception) -> str:
    from agent_relay.system.clock import SystemClock
    from agent_relay.system.crash_reports import write_crash

    try:
        folder = get_folders().crashes
    except RelayError:
        return ""
    path = write_crash(folder, error, at=SystemClock().now(), version=__version__, doing="serving")
    logging.getLogger("agent_relay.daemon").error("crash error=%s report=%s", type(error).__name__, path)
    return path


if __name__ == "__main__":
    sys.exit(main())
