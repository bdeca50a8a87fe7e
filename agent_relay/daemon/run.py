"""Run the daemon once it owns its socket: serve until asked to stop; keep socket and lock in place.

Its operations on itself are here; the application's are added to them.
"""

import asyncio
import logging
import os
import platform
import resource
import signal
import socket
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial

import msgspec

from agent_relay import __version__
from agent_relay.daemon.server import CONNECTION_LIMIT, Notices, Report, Server
from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.fields import Fields
from agent_relay.domain.protocol.operations import (
    DAEMON_LOGS,
    DAEMON_STATUS,
    DAEMON_STOP,
    PING,
    App,
    Handler,
    NoticeSender,
    Peer,
)
from agent_relay.system.clock import Clock
from agent_relay.system.crash_reports import write_crash
from agent_relay.system.disk.folder_alarm import FolderAlarm, identify, identify_open
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.failures import find_outer_cause
from agent_relay.system.net.unix_sockets import listen
from agent_relay.terminal.holder_client import HolderCheck

_log = logging.getLogger(__name__)


class Daemon(msgspec.Struct, frozen=True):
    """The daemon's facts about itself. `count_*` return numbers of now; they are called for each answer."""

    folders: Folders
    started_at: datetime
    count_connections: Callable[[], int]
    count_subscribers: Callable[[], int]
    stop: Callable[[], None]


def build_handlers(daemon: Daemon, app: Mapping[str, Handler]) -> dict[str, Handler]:
    """Return every handler by name. Raise ValueError if one of the application's hides the daemon's own."""
    holders = HolderCheck()

    async def ping(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        return {}

    async def status(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        trouble = await asyncio.to_thread(holders.find_fault)
        return {
            **({"trouble": trouble} if trouble else {}),
            "pid": os.getpid(),
            "daemon": __version__,
            "python": platform.python_version(),
            "started_at": daemon.started_at.isoformat(),
            "connections": daemon.count_connections(),
            "subscribers": daemon.count_subscribers(),
            "socket": daemon.folders.daemon_socket,
            "log": daemon.folders.daemon_log,
            "crashes": daemon.folders.crashes,
        }

    async def stop(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        daemon.stop()
        return {"pid": os.getpid()}

    async def logs(_sent: Fields, _peer: Peer) -> Mapping[str, object]:
        return {"log": daemon.folders.daemon_log}

    own = dict(
        (
            PING.performed_by(ping),
            DAEMON_STATUS.performed_by(status),
            DAEMON_STOP.performed_by(stop),
            DAEMON_LOGS.performed_by(logs),
        )
    )
    twice = sorted(own.keys() & app.keys())
    if twice:
        raise ValueError(f"two handlers for {', '.join(twice)}")
    return own | dict(app)


_SETTLES_S = 0.2
"""The folder's removal is over by then: a folder made at once would get in its way."""
_AGAIN_S = 2.0
_SELDOM_S = 60.0
_UNTOLD_S = 5.0
"""Seconds between checks of the folder if the kernel reports no changes."""

ListenAgain = Callable[[socket.socket], Awaitable[None]]


class RuntimeKeeper:
    """Keeps the socket and `lock` of a daemon where its folders say; makes again what was deleted.

    `leave` is called if another daemon has taken over meanwhile. After a first check, nothing is checked
    before something was deleted or moved, if the kernel reports that. Use it from the event loop.
    """

    def __init__(self, folders: Folders, lock: int, *, leave: Callable[[], None]) -> None:
        self._folders = folders
        self._lock = lock
        self._leave = leave
        self._named = identify(folders.daemon_socket)
        # Something may have been deleted while the application started.
        self._changed = asyncio.Event()
        self._changed.set()
        self._alarm: FolderAlarm | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_found(self) -> bool:
        """True if the socket that clients find is this daemon's."""
        return identify(self._folders.daemon_socket) == self._named

    def start(self, listen_again: ListenAgain) -> None:
        """Begin to keep socket and lock; `listen_again` gets each new socket."""
        self._set_alarm()
        self._task = asyncio.create_task(self._keep(listen_again), name="keep the runtime folder")

    async def stop(self) -> None:
        """Stop keeping socket and lock."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._drop_alarm()

    async def _keep(self, listen_again: ListenAgain) -> None:
        wait_s = _SELDOM_S
        while True:
            is_told = self._alarm is not None and self._alarm.fd >= 0
            limit_s = wait_s if wait_s < _SELDOM_S else None if is_told else _UNTOLD_S
            try:
                async with asyncio.timeout(limit_s):
                    await self._changed.wait()
                await asyncio.sleep(_SETTLES_S)
            except TimeoutError:
                wait_s *= 2
            self._changed.clear()
            try:
                if await self._restore(listen_again):
                    # What was just made may go with the rest of what is removed, or be hidden by a mount.
                    wait_s = _AGAIN_S
                    self._set_alarm()
                    _log.warning("runtime-folder-made-again pid=%d", os.getpid())
            except (RelayError, OSError) as error:
                # There may be no place for it before the user's next login.
                wait_s = _AGAIN_S
                _log.info("runtime-folder-missing why=%s", type(error).__name__)

    async def _restore(self, listen_again: ListenAgain) -> bool:
        """Make again what is gone; return whether anything was. Raise RelayError or OSError on failure."""
        if self.is_found and identify(self._folders.daemon_lock) == identify_open(self._lock):
            return False
        ensure_private(self._folders.runtime)
        start = take_lock(self._folders.start_lock)
        if start is None:
            raise RelayError("another daemon is starting")
        try:
            if identify(self._folders.daemon_lock) != identify_open(self._lock):
                fresh = take_lock(self._folders.daemon_lock)
                if fresh is None:
                    _log.warning("another-daemon-serves pid=%d", os.getpid())
                    self._leave()
                    return False
                os.dup2(fresh, self._lock, inheritable=False)
                os.close(fresh)
            if not self.is_found:
                listening = listen(self._folders.daemon_socket)
                self._named = identify(self._folders.daemon_socket)
                await listen_again(listening)
        finally:
            os.close(start)
        return True

    def _set_alarm(self) -> None:
        self._drop_alarm()
        self._alarm = FolderAlarm(self._folders.runtime)
        if self._alarm.fd >= 0:
            asyncio.get_running_loop().add_reader(self._alarm.fd, self._wake)

    def _drop_alarm(self) -> None:
        if self._alarm is not None and self._alarm.fd >= 0:
            asyncio.get_running_loop().remove_reader(self._alarm.fd)
            self._alarm.close()

    def _wake(self) -> None:
        if self._alarm is not None:
            self._alarm.take()
        self._changed.set()


STOP_LIMIT_S = 10.0
"""Longest time for the application to stop, in seconds; then the daemon exits as if it had been killed."""

_THREADS = 64
"""Most threads; they wait, for git, locks and ends of processes: sessions decide their number, not cores."""

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
        place={"config": folders.config, "state": folders.state},
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
