"""Start the daemon when it is needed, however many clients need it at once, and stop it.

Hot commands import this module; what only starting and stopping need is imported inside the functions.
"""

import os
import select
import sys
import time

from agent_relay import __version__
from agent_relay.client.connection import (
    ANSWER_LIMIT_S,
    Connection,
    DaemonStoppingError,
    NobodyListensError,
    OtherProtocolError,
    check_home,
    find_daemon_pid,
)
from agent_relay.domain.errors import DaemonUnreachableError, RelayError, UntrustedDataError
from agent_relay.domain.names import is_newer
from agent_relay.domain.protocol.wire import parse_line, parse_refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agent_relay.system.disk.folders import Folders


START_LIMIT_S = 30.0
STOP_LIMIT_S = 15.0
_ATTEMPTS = 5
_ANSWER_LIMIT_BYTES = 1 << 16
_READY = b"ready\n"
_KEPT = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP")
_KEPT_PREFIXES = ("LC_", "XDG_", "AGENT_RELAY_")
MOVED = "If it was moved or upgraded, run agent-relay again; else install it again"
CHECK = "--check"
"""The daemon's program exits with 0 if it could be loaded."""
_LOOK = "See: agent-relay daemon logs"


def connect_or_start(
    folders: "Folders",
    *,
    limit_s: float = START_LIMIT_S,
    command: "Sequence[str] | None" = None,
    unless_stopped: bool = False,
    meanwhile: "Callable[[], None] | None" = None,
) -> Connection:
    """Return a greeted connection to the user's one daemon; start one if none is running.

    An older daemon is replaced by ours, while agents run on; a newer one stays. `command` replaces what is
    started, for other applications of the same daemon, and `meanwhile` is called while it starts. With
    `unless_stopped`, none is started if the last one was stopped on purpose: that raises DaemonStoppingError.
    Raises DaemonUnreachableError if the daemon cannot be started or is not ready within `limit_s`, and the
    daemon's own error if it reports one.
    """
    deadline = time.monotonic() + limit_s
    for _ in range(_ATTEMPTS):
        try:
            connection = Connection.open(folders, limit_s=max(0.1, deadline - time.monotonic()))
            if not _gives_way(connection.daemon, command):
                return connection
            connection.close()
            stop_daemon(folders, only=connection.pid)
        except OtherProtocolError as error:
            if not _gives_way(error.daemon, command):
                raise
            stop_daemon(folders, only=error.pid)
        except NobodyListensError as error:
            if unless_stopped and isinstance(error, DaemonStoppingError):
                raise
            if unless_stopped and os.path.lexists(folders.stopped_mark):
                raise DaemonStoppingError("the daemon was stopped", hint=error.hint) from None
            start_daemon(command, limit_s=max(0.1, deadline - time.monotonic()), meanwhile=meanwhile)
    return Connection.open(folders, limit_s=max(0.1, deadline - time.monotonic()))


def ask_daemon(
    folders: "Folders", op: str, /, *, limit_s: float = ANSWER_LIMIT_S, **fields: object
) -> dict[str, object]:
    """Find or start a daemon, send it one request over a connection of its own, and return its answer."""
    with connect_or_start(folders) as connection:
        return connection.request(op, limit_s=limit_s, **fields)


def _gives_way(version: str, command: "Sequence[str] | None") -> bool:
    """Return whether a daemon of that version is older than ours, and ours is known to be able to start.

    One that works is not ended for one that cannot be loaded.
    """
    return is_newer(__version__, version) and (command is not None or not find_start_fault())


def find_start_fault(*, limit_s: float = START_LIMIT_S) -> str:
    """Return why our daemon's program cannot be loaded now, for the user; empty if it can.

    Takes as long as starting it, but starts none.
    """
    from agent_relay.domain.text.plain import find_reason
    from agent_relay.system.programs import Ending, run_program

    try:
        answer = run_program([*build_daemon_command()[:-1], CHECK], limit_s=limit_s)
    except RelayError as error:
        return error.sentence
    if answer.ok:
        return ""
    if answer.ending is Ending.LATE:
        return (
            f"the daemon did not load within {limit_s:g} s: this machine is overloaded, or its disk is slow"
        )
    if answer.ending is Ending.NOT_STARTED:
        return f"the daemon cannot be started: {answer.why}"
    why = find_reason(answer.errors.decode("utf-8", "replace")) or f"status {answer.status}"
    return f"the daemon cannot be loaded: {why}"


def start_daemon(
    command: "Sequence[str] | None" = None,
    *,
    limit_s: float = START_LIMIT_S,
    meanwhile: "Callable[[], None] | None" = None,
) -> None:
    """Make sure that a daemon of this user answers requests: this one, or another that was faster.

    Waits on the pipe the new daemon reports on, so neither side polls. Raises DaemonUnreachableError, or the
    error the daemon reported.
    """
    heard, told = os.pipe()
    try:
        try:
            pid = _spawn(command or build_daemon_command(), told)
        finally:
            os.close(told)
        if meanwhile is not None:
            meanwhile()
        answer = _read_answer(heard, limit_s=limit_s)
    finally:
        os.close(heard)
    # The child left at once; its own child is the daemon.
    os.waitpid(pid, 0 if answer is not None else os.WNOHANG)
    if answer is None:
        raise DaemonUnreachableError(f"the daemon did not get ready within {limit_s:.0f} s", hint=_LOOK)
    if answer and not answer.endswith(_READY):
        raise _why(answer)


def stop_daemon(folders: "Folders", *, limit_s: float = STOP_LIMIT_S, only: int | None = None) -> int | None:
    """Stop the daemon and return its pid once it is gone; `None` if there was none to stop. Holders run on.

    With `only`, stops no daemon but the one with that pid. Works with a daemon of any version, because it
    sends SIGTERM. Raises DaemonUnreachableError if the daemon still runs after `limit_s`, or is another
    home's.
    """
    import signal

    pid = find_daemon_pid(folders)
    if pid is None or only not in {None, pid}:
        return None
    check_home(folders, pid)
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return pid
    try:
        # The descriptor pins the process; that it is the one that listens is seen by asking again.
        if find_daemon_pid(folders) != pid:
            return pid
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(int(limit_s * 1000)):
            raise DaemonUnreachableError(f"the daemon (pid {pid}) does not end", hint=f"Run: kill -9 {pid}")
    except ProcessLookupError:
        return pid
    finally:
        os.close(handle)
    return pid


def build_daemon_command() -> list[str]:
    """Build the command that runs our own package by its path, in isolated Python.

    No PYTHON* variable and no folder can change what it runs. Raises DaemonUnreachableError if this Python or
    the package is gone.
    """
    if not sys.executable:
        raise DaemonUnreachableError("the path of this Python is unknown, so no daemon can be started")
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    program = os.path.join(package, "daemon", "__main__.py")
    if not os.path.exists(program):
        raise DaemonUnreachableError(
            f"no daemon can be started: agent-relay is no longer installed in {package}", hint=MOVED
        )
    if not os.path.exists(sys.executable):
        raise DaemonUnreachableError(
            f"no daemon can be started: the Python of agent-relay has gone ({sys.executable})", hint=MOVED
        )
    return [sys.executable, "-I", program, "--detached"]


def _spawn(command: "Sequence[str]", told: int) -> int:
    """Start the daemon and return the pid of the child.

    The daemon gets only the variables that say where things are, because it outlives the terminal it was
    started from.
    """
    from agent_relay.domain.names import LEG_VARIABLE, RACE_VARIABLE
    from agent_relay.system.spawn import give_streams, spawn_program

    # Whoever ends what a leg or a race started must not end the daemon, which an agent may have started.
    dropped = (LEG_VARIABLE, RACE_VARIABLE)
    environment = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or (name.startswith(_KEPT_PREFIXES) and name not in dropped)
    }
    try:
        return spawn_program(command[0], command, environment, actions=give_streams(None, None, told))
    except OSError as error:
        raise DaemonUnreachableError(f"cannot start the daemon: {error.strerror}") from error


def _read_answer(heard: int, *, limit_s: float) -> bytes | None:
    """Return what the daemon reported until it was ready or closed the pipe; `None` after `limit_s`."""
    deadline = time.monotonic() + limit_s
    answer = b""
    while len(answer) < _ANSWER_LIMIT_BYTES and not answer.endswith(_READY):
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([heard], [], [], left_s)[0]:
            return None
        part = os.read(heard, 4096)
        if not part:
            break
        answer += part
    return answer


def _why(answer: bytes) -> RelayError:
    last = answer.strip().split(b"\n")[-1]
    try:
        return parse_refusal(parse_line(last))
    except UntrustedDataError:
        said = last.decode("utf-8", "replace")[:200]
        return DaemonUnreachableError(f"the daemon could not start: {said}", hint="Run: agent-relay doctor")


def renew_index(folders: "Folders") -> bool:
    """Have the daemon name every session at work in the index; return false if no daemon could be asked.

    The state folder may have been removed while sessions are alive. A daemon is started only if there are
    legs that it could take up again.
    """
    try:
        try:
            connection = Connection.open(folders)
        except NobodyListensError:
            if not os.listdir(folders.legs):
                return False
            connection = connect_or_start(folders)
        with connection:
            connection.request("session.list")
    except (RelayError, OSError):
        return False
    return True
