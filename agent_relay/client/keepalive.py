"""Keep a daemon running behind an attached terminal, and give the next one the terminal's environment."""

import importlib
import os
import signal
import time

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection, DaemonStoppingError
from agent_relay.domain.errors import DaemonUnreachableError, RelayError
from agent_relay.system.failures import start_thread

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agent_relay.system.disk.folders import Folders

_ANSWER_S = 10.0


def bring_environment(
    connection: "Connection",
    session: str,
    *,
    environ: "Mapping[str, str] | None" = None,
    size: tuple[int, int] = (24, 80),
) -> None:
    """Give the daemon `environ`, else this process's, for the session's next agent if it has no better one.

    `size` is the terminal's rows and columns. A refusal of the daemon is ignored: the next request
    reports the reason.
    """
    given = dict(os.environ if environ is None else environ)
    rows, cols = size
    try:
        connection.request(
            "session.environment", limit_s=_ANSWER_S, session=session, env=given, rows=rows, cols=cols
        )
    except RelayError:
        return


FIRST_S = 0.2
"""Seconds from a daemon's end until it is replaced; doubled each time the next one does not last."""
LATER_S = 1.0
"""Wait before anything else, in seconds, so that the agent's screen is painted first."""
LONGEST_S = 20.0
"""The longest pause between two tries, and how long a daemon must have lived to reset the pause to the first.

Terminals wait up to three times as long, so that they do not all try at once. Without a daemon no limit is
seen.
"""


def watch_daemon(
    folders: "Folders", greet: "Callable[[Connection], None]" = lambda _: None, *, later: "Sequence[str]" = ()
) -> None:
    """Replace a daemon that dies, until this process ends; after an orderly stop only wait for the next one.

    `greet` is called with a connection to each daemon that is found or started, before anything else is.
    `later` are modules the terminal may need at any time, but not at once: they are loaded when its screen
    has been painted, because an upgrade may remove their files. Without a daemon the agent's limit would not
    be seen. A thread of its own waits on a connection, which costs nothing while the daemon lives, and
    starting the next one holds up neither keys nor output.
    """
    # Unix signals belong to the thread that has the terminal: a thread inherits the mask it is started under.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        start_thread(
            "keepalive",
            lambda: _watch(folders, greet, later),
            on_failure=lambda error: _report(folders, error),
        )
    except RuntimeError:
        return  # no more threads for this user: the terminal works as well without
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _watch(folders: "Folders", greet: "Callable[[Connection], None]", later: "Sequence[str]") -> None:
    def meet(connection: Connection) -> Connection:
        greet(connection)
        return connection

    try:
        time.sleep(LATER_S)
        for name in later:
            importlib.import_module(name)
    except (ImportError, SyntaxError):
        pass  # gone already: whoever needs them says so
    keep_running(
        lambda: meet(connect_or_start(folders, unless_stopped=True)), lambda: meet(Connection.open(folders))
    )


def _report(folders: "Folders", error: BaseException) -> None:
    """Write a crash report: a traceback would stand in the agent's screen."""
    try:
        from datetime import UTC, datetime

        from agent_relay import __version__
        from agent_relay.system.crash_reports import write_crash
    except ImportError:
        return  # the installation is gone
    at = datetime.now(UTC)
    write_crash(folders.crashes, error, at=at, version=__version__, doing="watching the daemon")


def keep_running(
    start: "Callable[[], Connection]",
    find: "Callable[[], Connection]",
    *,
    pause: "Callable[[float], None]" = time.sleep,
) -> None:
    """Call `start` after a daemon's death and `find` after an orderly end; never return.

    A person who stops the daemon on purpose must not get it back at once; the one they start is watched
    again.
    """
    connect, delay_s = start, FIRST_S
    while True:
        began = time.monotonic()
        try:
            connection = connect()
            if connect is find:
                # How long one was missed says nothing about how long the next one lasts.
                delay_s = FIRST_S
            is_stopped = _is_stopped(connection)
        except DaemonStoppingError:
            is_stopped = True
        except (RelayError, OSError):
            is_stopped = connect is find  # it could not be started or spoken to, which may pass
        connect = find if is_stopped else start
        if time.monotonic() - began >= LONGEST_S:
            delay_s = FIRST_S
        # Terminals do not all start a daemon at once: the first one's is found by the others.
        pause(delay_s * (1 + os.getpid() % 32 / 16))
        delay_s = min(2 * delay_s, LONGEST_S)


def _is_stopped(connection: Connection) -> bool:
    """Wait until the daemon ends; return whether it announced that, which one that was killed cannot."""
    with connection:
        try:
            for _ in connection.notices():
                continue
        except DaemonUnreachableError:
            return False
    return True
