import asyncio
import errno
import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from agent_relay.client.connection import Connection
from agent_relay.daemon.run import run
from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.operations import Handler, NoticeSender, Peer
from agent_relay.system.clock import Clock, SystemClock
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.disk.locks import take_lock
from agent_relay.system.net.unix_sockets import listen


class _App:
    """An application whose start does what the test says."""

    def __init__(self, start: Callable[[], object]) -> None:
        self.begin = start
        self.stopped = 0

    async def start(self) -> None:
        result = self.begin()
        if asyncio.iscoroutine(result):
            await result

    async def stop(self) -> None:
        self.stopped += 1

    def handlers(self) -> Mapping[str, Handler]:
        return {}


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    """Folders of our own."""
    found = Folders(str(tmp_path / "run"), str(tmp_path / "state"), str(tmp_path / "config"))
    ensure_private(found.runtime)
    ensure_private(found.state)
    return found


def _live(folders: Folders, app: _App, use: Callable[[], object]) -> None:
    """Runs the daemon in this process; `use` runs in a thread once it is ready."""

    def open_app(_folders: Folders, _clock: Clock, _notices: NoticeSender) -> _App:
        return app

    lock = take_lock(folders.daemon_lock)
    assert lock is not None

    async def main() -> None:
        used: list[asyncio.Future[object]] = []
        loop = asyncio.get_running_loop()
        await run(
            folders,
            SystemClock(),
            open_app=open_app,
            lock=lock,
            listening=listen(folders.daemon_socket),
            ready=lambda: used.append(loop.run_in_executor(None, use)),
            leaving=lambda: None,
        )
        for future in used:
            await future

    asyncio.run(asyncio.wait_for(main(), 120))


def test_it_serves_until_it_is_asked_to_stop(folders: Folders) -> None:
    """The socket's name is gone before the application lets go, so nobody meets a dying daemon."""
    app = _App(lambda: None)

    def use() -> None:
        with Connection.open(folders) as connection:
            assert connection.request("ping")["ok"] is True
            status = connection.request("daemon.status")
            assert (status["connections"], status["subscribers"]) == (1, 0)
            assert connection.request("daemon.stop")["ok"] is True
            assert [notice["notice"] for notice in connection.notices(limit_s=60)] == []

    _live(folders, app, use)
    assert app.stopped == 1
    assert not os.path.exists(folders.daemon_socket)


def test_a_sigterm_while_it_starts_ends_it(folders: Folders) -> None:
    """A recovery that hangs must not make the daemon unstoppable."""

    async def hang() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.Event().wait()

    app = _App(hang)
    _live(folders, app, lambda: None)
    assert app.stopped == 0


def test_an_application_that_cannot_start_is_heard(folders: Folders) -> None:
    """Its sentence reaches the user who started it."""

    def fail() -> None:
        raise RelayError("no room")

    with pytest.raises(RelayError, match="no room"):
        _live(folders, _App(fail), lambda: None)


def test_the_socket_of_another_daemon_is_left_alone(folders: Folders) -> None:
    """Something may have cleaned our folder, and a newer daemon stands in our place."""

    def use() -> None:
        os.unlink(folders.daemon_socket)
        listen(folders.daemon_socket).close()
        os.kill(os.getpid(), signal.SIGTERM)

    _live(folders, _App(lambda: None), use)
    assert os.path.exists(folders.daemon_socket)


def test_a_task_nobody_awaits_is_reported_without_contents(folders: Folders) -> None:
    """Asyncio's own message would quote its values."""

    async def boom() -> None:
        raise KeyError("sk-planted")

    app = _App(lambda: None)
    tasks: list[asyncio.Future[None]] = []

    async def begin() -> None:
        tasks.append(asyncio.ensure_future(boom()))

    app.begin = begin

    def use() -> None:
        tasks.clear()
        os.kill(os.getpid(), signal.SIGTERM)

    _live(folders, app, use)
    (name,) = os.listdir(folders.crashes)
    report = Path(folders.crashes, name).read_text()
    assert "doing a background task\n\nKeyError\n" in report
    assert "sk-planted" not in report


def test_work_that_waits_has_more_threads_than_there_are_cores(folders: Folders) -> None:
    """On two cores six waits, for git, a lock or the end of a process, would be all that a daemon can do."""
    meeting = threading.Barrier(40)

    async def start() -> None:
        await asyncio.gather(*(asyncio.to_thread(meeting.wait, 20) for _ in range(40)))

    app = _App(start)
    _live(folders, app, lambda: os.kill(os.getpid(), signal.SIGTERM))
    assert (app.stopped, meeting.broken) == (1, False)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (ConnectionResetError(errno.ECONNRESET, "reset"), "a connection broke"),
        (BrokenPipeError(errno.EPIPE, "broken"), "a connection broke"),
        (OSError(errno.EMFILE, "too many"), "Too many open files"),
    ],
)
def test_what_the_machine_did_is_told_and_leaves_no_crash_report(
    folders: Folders, error: Exception, why: str
) -> None:
    """A report asks somebody to look for a mistake in our code; there is none."""

    class _Failing(_App):
        def handlers(self) -> Mapping[str, Handler]:
            async def fail(_sent: Mapping[str, object], _peer: Peer) -> Mapping[str, object]:
                raise error

            return {"fail": fail}

    def use() -> None:
        with Connection.open(folders) as connection:
            with pytest.raises(RelayError, match=f"the daemon could not do that just now: {why}") as caught:
                connection.request("fail")
            assert caught.value.code == 1
            connection.request("daemon.stop")

    async def leave_behind() -> None:
        asyncio.get_running_loop().call_exception_handler({"message": "lost", "exception": error})

    _live(folders, _Failing(leave_behind), use)
    assert not os.path.exists(folders.crashes)
