"""A user's whole machine in one folder: home, project, relay's folders, a real daemon, real holders."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping

from agent_relay.client.connection import Connection, find_daemon_pid
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Event
from agent_relay.domain.session import Session
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from agent_relay.system.disk.folders import Folders, get_folders
from agent_relay.system.processes import PAUSE_VARIABLE
from tests.support import preloaded
from tests.support.measured import is_measured, measured
from tests.support.world_end import end_processes, end_world, find_belonging, list_roots

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROOMY = "/var/tmp"  # noqa: S108 - agents refuse to work in /tmp; the folder made below is private


class RelayWorld:
    """Everything relay does in here can be seen and is gone afterwards."""

    def __init__(self, folder: str, *, project: str = "project", order: tuple[str, ...]) -> None:
        self.folder = folder
        self.home = os.path.join(folder, "home")
        self.project = os.path.join(folder, project)
        self.environ = {
            "PATH": os.environ["PATH"],
            "HOME": self.home,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "AGENT_RELAY_HOME": os.path.join(folder, "relay"),
        }
        self.folders: Folders = get_folders(self.environ)
        self.daemons: list[preloaded.Process] = []
        self.daemon_program = os.path.join(CHECKOUT, preloaded.DAEMON)
        os.makedirs(self.home)
        os.makedirs(self.project)
        os.makedirs(self.folders.config, mode=0o700)
        names = ", ".join(f'"{name}"' for name in order)
        with open(os.path.join(self.folders.config, "config.toml"), "w", encoding="utf-8") as file:
            file.write(f"order = [{names}]\n")

    def start_daemon(self, *, pause_at: str = "") -> preloaded.Process:
        """A daemon that answers requests, or has frozen itself at `pause_at`.

        Where it is to freeze, one that a watching client started meanwhile makes way.
        """
        while (daemon := self._start_one(pause_at)) is None:
            continue
        assert daemon.returncode is None, f"the daemon left with {daemon.returncode}"
        return daemon

    def _start_one(self, pause_at: str) -> preloaded.Process | None:
        daemon = self.spawn_daemon({PAUSE_VARIABLE: pause_at} if pause_at else {})
        wait_until(
            lambda: self.answers() or is_stopped(daemon.pid) or daemon.poll() is not None,
            "the daemon answers",
        )
        other = find_daemon_pid(self.folders) if pause_at else None
        if other is None or other == daemon.pid:
            return daemon
        kill(other)
        daemon.kill()
        daemon.wait()
        return None

    def spawn_daemon(self, more: Mapping[str, str]) -> preloaded.Process:
        """A process that is about to be a daemon, with `more` in its environment.

        One of ours is forked; where coverage runs, or another is wanted, it is started.
        """
        daemon: preloaded.Process
        if self.daemon_program == os.path.join(CHECKOUT, preloaded.DAEMON) and not is_measured():
            with open(os.devnull, "r+b") as nothing:
                streams = [nothing.fileno()] * 3
                env = {**self.environ, **more}
                daemon = preloaded.start(preloaded.DAEMON, [], env=env, cwd="/", streams=streams, leads=True)
            self.daemons.append(daemon)
            return daemon
        daemon = subprocess.Popen(
            [sys.executable, "-I", self.daemon_program],
            env={**self.environ, **measured(), **more},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.daemons.append(daemon)
        return daemon

    def kill_daemons(self) -> None:
        """No daemon lives, and none had the chance to tidy up."""
        for daemon in self.daemons:
            # Not by its number, which is another process's once its end was seen.
            daemon.kill()
            daemon.wait()

    def answers(self) -> bool:
        """Whether a daemon answers."""
        try:
            self.connect(limit_s=0.3).close()
        except RelayError:
            return False
        return True

    def connect(self, *, limit_s: float = 60.0) -> Connection:
        """A greeted connection to the daemon."""
        return Connection.open(self.folders, limit_s=limit_s)

    def open(self, agent: str, **fields: object) -> dict[str, object]:
        """What the daemon answers a terminal in the project that wants `agent`."""
        wish = {"cwd": self.project, "env": self.environ, "rows": 30, "cols": 100, **fields}
        with self.connect() as connection:
            return connection.request("open", agent=agent, limit_s=120, **wish)

    def ask(self, op: str, **fields: object) -> dict[str, object]:
        """The daemon's answer."""
        with self.connect() as connection:
            return connection.request(op, limit_s=120, **fields)

    def events(self, session: str) -> list[Event]:
        """The session's journal."""
        return read_events(f"{self.project}/.agent-relay/sessions/{session}/journal.jsonl")

    def session(self, session: str) -> Session:
        """The session its journal describes."""
        found = fold_events(self.events(session))
        assert found is not None
        return found

    def wait_for(
        self, session: str, is_so: Callable[[Session], bool], what: str, limit_s: float = 90
    ) -> Session:
        """The session once `is_so`."""
        wait_until(lambda: is_so(self.session(session)), what, limit_s=limit_s)
        return self.session(session)

    def processes(self) -> dict[int, str]:
        """Every living process that belongs to this world, with its command line."""
        return find_belonging(self.folder, home=self.home, legs=self.folders.legs)

    def find_agents(self) -> list[str]:
        """The command lines of living scripted agents."""
        return [command for command in self.processes().values() if "/agent.py --" in command]

    def find_daemons(self) -> set[int]:
        """The ids of living daemons, without what is forked from them."""
        commands = self.processes().items()
        return list_roots({pid for pid, command in commands if "daemon/__main__.py" in command})

    def find_workers(self) -> set[int]:
        """The ids of those among them that are neither a daemon nor what it builds packets by."""
        return {pid for pid, command in self.processes().items() if not is_daemons(command)}

    def close(self) -> None:
        """Whatever is left is killed, whatever was written is gone."""
        for daemon in self.daemons:
            if is_measured():
                daemon.terminate()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    daemon.wait(timeout=10)
        end_processes(self.processes)
        for daemon in self.daemons:
            daemon.kill()
            daemon.wait()
        end_world(self.folder, self.processes)


@contextlib.contextmanager
def relay_world(
    *,
    project: str = "project",
    order: tuple[str, ...] = ("demo", "understudy"),
    kind: type[RelayWorld] = RelayWorld,
) -> Iterator[RelayWorld]:
    """A world that is gone afterwards, with nothing of it left running."""
    world = kind(tempfile.mkdtemp(prefix="ar-", dir=ROOMY), project=project, order=order)
    try:
        yield world
    finally:
        world.close()


def wait_until(is_so: Callable[[], bool], what: str, limit_s: float = 90.0) -> None:
    """Returns once `is_so`; fails naming `what` after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < deadline, f"waited {limit_s:g} s until {what}"
        time.sleep(0.02)


def is_daemons(command: str) -> bool:
    """Whether a command line is the daemon's, or that of a server it builds packets by."""
    return "daemon" in command or "work_server" in command


def is_stopped(pid: int) -> bool:
    """Whether the process is frozen by SIGSTOP."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()[0] == b"T"
    except OSError:
        return False


def kill(pid: int) -> None:
    """The process is gone, without a chance to tidy up."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
