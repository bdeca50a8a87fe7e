"""What an attached terminal does when its daemon ends: replaces the dead, respects the stopped."""

import os
import signal
import threading
from collections.abc import Iterator

import pytest

from agent_relay.client.autostart import connect_or_start
from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.client.keepalive import keep_running
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.protocol.wire import NOTICE_STOPPING, render_line
from agent_relay.system.disk.folders import Folders, ensure_private
from agent_relay.system.net.unix_sockets import listen
from tests.support.tiny_client import COMMAND, end_daemon

pytestmark = pytest.mark.size("test")


class _EnoughError(Exception):
    """The watch would go on for ever."""


class _Daemon:
    """Daemons that come and end as the test says; `asked` is how each connection was asked for."""

    def __init__(self, folders: Folders) -> None:
        self.folders = folders
        self.asked: list[str] = []
        self.pauses: list[float] = []

    def begin(self) -> Connection:
        """A daemon, as the user's own commands start it."""
        self.asked.append("begin")
        return connect_or_start(self.folders, command=COMMAND)

    def start(self) -> Connection:
        """A daemon, started where none runs, unless it was stopped."""
        self.asked.append("start")
        return connect_or_start(self.folders, command=COMMAND, unless_stopped=True)

    def find(self) -> Connection:
        """A daemon, where one runs."""
        self.asked.append("find")
        return Connection.open(self.folders)


def _watch(daemon: _Daemon, ends: Iterator[int]) -> None:
    """Four rounds with daemons that end by the next of `ends` as soon as they are connected to."""

    def watched(connect: object) -> Connection:
        assert callable(connect)
        connection = connect()
        assert isinstance(connection, Connection)
        if number := next(ends, 0):
            end_daemon(daemon.folders, number)
        return connection

    def pause(seconds: float) -> None:
        daemon.pauses.append(seconds)
        if len(daemon.pauses) == 4:
            raise _EnoughError

    with pytest.raises(_EnoughError):
        keep_running(lambda: watched(daemon.start), lambda: watched(daemon.find), pause=pause)


def test_a_killed_daemon_is_replaced_each_time_a_little_later(folders: Folders) -> None:
    """A daemon that cannot live must not be started fifty times a second."""
    daemon = _Daemon(folders)
    _watch(daemon, iter([signal.SIGKILL] * 9))
    assert daemon.asked == ["start"] * 4
    first, *later = [round(pause / daemon.pauses[0]) for pause in daemon.pauses]
    assert (first, later) == (1, [2, 4, 8])
    assert 0.2 <= daemon.pauses[0] < 0.6


def test_a_daemon_stopped_on_purpose_is_not_started_again(folders: Folders) -> None:
    """`agent-relay daemon stop` would mean nothing beside an open terminal."""
    daemon = _Daemon(folders)
    _watch(daemon, iter([signal.SIGTERM]))
    assert daemon.asked == ["start", "find", "find", "find"]
    assert find_daemon_pid(folders) is None


def test_a_daemon_stopped_while_it_is_greeted_is_not_started_again(folders: Folders) -> None:
    """A terminal that comes in that moment knows as well as any other that it was stopped on purpose."""
    ensure_private(folders.runtime)
    greeted: list[bytes] = []

    def stop() -> None:
        with listening, listening.accept()[0] as peer:
            greeted.append(peer.recv(4096))
            os.unlink(folders.daemon_socket)
            peer.sendall(render_line({"notice": NOTICE_STOPPING}))

    daemon = _Daemon(folders)
    with listen(folders.daemon_socket) as listening:
        listening.setblocking(True)
        stopping = threading.Thread(target=stop)
        stopping.start()
        _watch(daemon, iter([signal.SIGKILL] * 4))
        stopping.join(60)
    assert daemon.asked == ["start", "find", "find", "find"]
    assert (len(greeted), find_daemon_pid(folders)) == (1, None)


def test_a_daemon_stopped_before_it_is_looked_for_is_not_started_again(folders: Folders) -> None:
    """A terminal that comes a moment later, when the socket is gone, knows as well that it was not killed."""
    daemon = _Daemon(folders)
    daemon.begin().close()
    end_daemon(folders, signal.SIGTERM)
    _watch(daemon, iter([signal.SIGKILL] * 4))
    assert daemon.asked == ["begin", "start", "find", "find", "find"]
    assert find_daemon_pid(folders) is None


def test_a_daemon_killed_before_it_is_looked_for_is_started_again(folders: Folders) -> None:
    """That the one before it was stopped on purpose says nothing about its own end."""
    daemon = _Daemon(folders)
    daemon.begin().close()
    end_daemon(folders, signal.SIGTERM)
    daemon.begin().close()
    end_daemon(folders, signal.SIGKILL)
    _watch(daemon, iter([signal.SIGKILL] * 4))
    assert daemon.asked == ["begin", "begin", "start", "start", "start", "start"]


def test_the_daemon_after_a_stopped_one_is_watched_again(folders: Folders) -> None:
    """`agent-relay daemon restart` must not end the watch: the new one may be killed like any other."""
    daemon = _Daemon(folders)
    daemon.begin().close()
    end_daemon(folders, signal.SIGTERM)
    asked = 0

    def begin() -> Connection:
        nonlocal asked
        asked += 1
        if asked == 1:
            daemon.begin().close()
            connection = daemon.start()
            end_daemon(folders, signal.SIGTERM)
            daemon.begin().close()
            return connection
        raise _EnoughError

    def find() -> Connection:
        connection = daemon.find()
        end_daemon(folders, signal.SIGKILL)
        return connection

    with pytest.raises(_EnoughError):
        keep_running(begin, find, pause=daemon.pauses.append)
    assert daemon.asked == ["begin", "begin", "start", "begin", "find"]


def test_a_daemon_that_was_missed_for_long_is_replaced_as_soon_as_any_other(folders: Folders) -> None:
    """Stopped for an hour and started again, it may die in its first minute: nobody would see the limit."""
    daemon = _Daemon(folders)

    def begin() -> Connection:
        if daemon.pauses:
            raise _EnoughError
        connection = daemon.start()
        end_daemon(folders, signal.SIGTERM)
        return connection

    def find() -> Connection:
        if len(daemon.pauses) == 4:
            daemon.begin().close()
        connection = daemon.find()
        end_daemon(folders, signal.SIGKILL)
        return connection

    with pytest.raises(_EnoughError):
        keep_running(begin, find, pause=daemon.pauses.append)
    assert [round(pause / daemon.pauses[0]) for pause in daemon.pauses] == [1, 2, 4, 8, 1]


@pytest.mark.size("check")
def test_a_daemon_that_cannot_be_started_is_tried_ever_more_rarely() -> None:
    """A typo in the configuration is mended in minutes; until then the machine has better things to do."""
    pauses: list[float] = []

    def refuse() -> Connection:
        raise ConfigurationError("config.toml is off")

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 12:
            raise _EnoughError

    with pytest.raises(_EnoughError):
        keep_running(refuse, refuse, pause=pause)
    rounded = [round(seconds * 0.2 / pauses[0], 1) for seconds in pauses]
    assert rounded == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, *[20.0] * 5]
