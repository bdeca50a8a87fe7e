"""The daemon's life once it owns its socket: serve until asked to stop, then release everything."""

import asyncio
import logging
import os
import resource
import signal
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from agent_relay import __version__
from agent_relay.daemon._notices import Notices
from agent_relay.daemon._operations import Daemon, build_handlers
from agent_relay.daemon.runtime_folder import RuntimeKeeper
from agent_relay.daemon.server import CONNECTION_LIMIT, Report, Server
from agent_relay.domain.protocol.requests import App, NoticeSender
from agent_relay.system.clock import Clock
from agent_relay.system.crash_reports import write_crash
from agent_relay.system.disk.folders import Folders
from agent_relay.system.failures import find_outer_cause

_log = logging.getLogger(__name__)

STOP_LIMIT_S = 10.0
"""How long the application may take to stop; then the daemon exits as if it had been killed."""

_THREADS = 64
"""Threads wait, for git, locks and ends of processes: their number depends on sessions, not on cores."""

OpenApp = Callable[[Folders, Clock, NoticeSender], App]


async def run(
    folders: Folders,
    clock: Clock,
    *,
    open_app: OpenApp,
    listening: socket.socket,
    lock: int,
    ready: Callable[[], None],
    leaving: Callable[[], None],
) -> None:
    """Serve until SIGTERM, SIGINT or the stop operation; keep the socket and `lock` where clients look.

    `ready` is called when requests are answered, `leaving` when the end begins, whatever its reason. Raises
    what the application's start raises. Holders run on afterwards.
    """
    report = partial(_report, folders, clock)
    asked = asyncio.Event()
    keeper = RuntimeKeeper(folders, lock, leave=asked.set)
    end = partial(_end, asked, folders, keeper)
    _prepare_loop(report, end)
    notices = Notices()
    try:
        app = open_app(folders, clock, notices)
        if not await _start(app, asked):
            _log.info("stopped-while-starting pid=%d", os.getpid())
            return
        server = _build_server(folders, clock, app=app, notices=notices, report=report, stop=end)
        await server.start(listening)
        keeper.start(server.listen_again)
        ready()
        _log.info("started pid=%d version=%s", os.getpid(), __version__)
        await asked.wait()
        _log.info("stopping connections=%d", server.connections)
        server.stop_listening()
    finally:
        leaving()
        await keeper.stop()
        # Those who come now must find nobody, and start the next daemon, which waits for our lock.
        listening.close()
        if keeper.is_found:
            os.unlink(folders.daemon_socket)
    await server.stop()
    await _stop(app)
    _log.info("stopped pid=%d", os.getpid())


def _prepare_loop(report: Report, end: Callable[[], None]) -> None:
    """Have uncaught errors reported and Unix signals call `end`; set how many threads there may be."""
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(partial(_report_task, report))
    loop.set_default_executor(ThreadPoolExecutor(_THREADS, thread_name_prefix="work"))
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, end)


async def _stop(app: App) -> None:
    try:
        async with asyncio.timeout(STOP_LIMIT_S):
            await app.stop()
    except TimeoutError:
        _log.warning("hurried limit_s=%g", STOP_LIMIT_S)


def _build_server(
    folders: Folders, clock: Clock, *, app: App, notices: Notices, report: Report, stop: Callable[[], None]
) -> Server:
    daemon = Daemon(
        folders,
        clock.now(),
        count_connections=lambda: server.connections,
        count_subscribers=lambda: len(notices),
        stop=stop,
    )
    server = Server(
        build_handlers(daemon, app.handlers()),
        notices,
        uid=os.geteuid(),
        report=report,
        connection_limit=min(CONNECTION_LIMIT, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2),
    )
    return server


async def _start(app: App, asked: asyncio.Event) -> bool:
    """Start the application; return `False` if its end was requested before. Raise what its start raises."""
    starting = asyncio.ensure_future(app.start())
    asking = asyncio.ensure_future(asked.wait())
    try:
        await asyncio.wait({starting, asking}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return False
        await starting
    finally:
        asking.cancel()
        starting.cancel()
        await asyncio.gather(starting, asking, return_exceptions=True)
    return True


def _end(asked: asyncio.Event, folders: Folders, keeper: RuntimeKeeper) -> None:
    """Begin the end, and leave a mark for clients that find no listener: it was intended.

    Without the mark it looks like a kill.
    """
    asked.set()
    if not keeper.is_found:
        return  # another daemon stands there
    try:
        os.close(os.open(folders.stopped_mark, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        _log.warning("stop-unmarked errno=%s", error.errno)


def _report(folders: Folders, clock: Clock, error: BaseException, doing: str) -> str:
    """Write a crash report and return its path; empty if the error is no bug of ours and only logged."""
    if why := find_outer_cause(error):
        _log.warning("trouble doing=%s error=%s why=%r", doing.replace(" ", "-"), type(error).__name__, why)
        return ""
    path = write_crash(folders.crashes, error, at=clock.now(), version=__version__, doing=doing)
    _log.error("crash doing=%s error=%s report=%s", doing.replace(" ", "-"), type(error).__name__, path)
    return path


def _report_task(report: Report, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Report an error of a task that nobody awaited.

    The context's message may quote values, so it is not logged.
    """
    error = context.get("exception")
    if isinstance(error, BaseException):
        report(error, "a background task")
    else:
        _log.error("loop-trouble")
