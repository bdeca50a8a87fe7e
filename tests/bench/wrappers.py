"""The ways to have a program on a terminal that are measured side by side, ours among them."""

import contextlib
import fcntl
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from agent_relay.client.connection import find_daemon_pid
from agent_relay.system.disk.folders import get_folders
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.wire import HolderSpec
from agent_relay.terminal.holder_client import StartedHolder, start_holder
from tests.bench.programs import READY
from tests.bench.session import COLS, ROWS, Session

NAMES = ("direct", "script", "dtach", "tmux", "screen", "relay")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.py")
WATCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watcher.py")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMAND = (
    sys.executable,
    "-I",
    "-c",
    f"import sys; sys.path.insert(0, {ROOT!r}); from agent_relay.__main__ import main; sys.exit(main())",
)
"""`agent-relay`, whatever is installed."""
AGENT = "claude"
_ANY_PROGRAM = """#!/bin/sh
while [ "$1" != run ]; do shift; done
shift
exec "$@"
"""
"""Stands for a real agent's program, and is whatever follows the word `run` of its arguments."""


@dataclass(frozen=True)
class Prepared:
    """A command line, the repository it is run in, and where its program will say its pid, if it does."""

    argv: list[str]
    tree: str
    pid_path: str = ""


class World:
    """A folder for sockets and settings, and everything started in it; `watched` holders have a detector."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="bench-")
        self.env = {
            "PATH": f"{self.folder}/bin:{os.environ.get('PATH', os.defpath)}",
            "HOME": self.folder,
            "ANTHROPIC_API_KEY": "none",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "SCREENDIR": os.path.join(self.folder, "screens"),
            "AGENT_RELAY_HOME": os.path.join(self.folder, "relay"),
        }
        self._count = 0
        self._sessions: list[Session] = []
        self._watchers: list[subprocess.Popen[bytes]] = []
        os.mkdir(self.env["SCREENDIR"], 0o700)
        self._write(
            "tmux.conf",
            "set -g status off\nset -s exit-empty off\nset -s escape-time 0\nset -g history-limit 2000\n",
        )
        self._write_agent()
        self._write("screenrc", "startup_message off\nautodetach on\ndefscrollback 2000\n")

    def _write_agent(self) -> None:
        """Have any program in a real agent's place: its adapter is the one that comes with us."""
        os.mkdir(os.path.join(self.folder, "bin"))
        os.chmod(self._write(os.path.join("bin", AGENT), _ANY_PROGRAM), 0o700)
        os.makedirs(get_folders(self.env).config, mode=0o700)
        self.write_order(AGENT)

    def write_order(self, *agents: str) -> None:
        """Name the agents that agent-relay may take, in this order."""
        config = os.path.join(get_folders(self.env).config, "config.toml")
        self._write(config, f"order = {list(agents)!r}\n")

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, wrapper: str, *program: str) -> Session:
        """That program of ours under that wrapper, ready. A second one under tmux shares its server."""
        return self.run(wrapper, lambda pid_path: build_program(program[0], pid_path, *program[1:]))

    def run(self, wrapper: str, build: Callable[[str], Sequence[str]]) -> Session:
        """What `build` makes of the path of a pid, under that wrapper, ready."""
        session = self.open(self.prepare(wrapper, build))
        session.wait_for(READY)
        return session

    def prepare(self, wrapper: str, build: Callable[[str], Sequence[str]]) -> Prepared:
        """The same, to be opened: nothing of it runs yet."""
        self._count += 1
        pid_path = os.path.join(self.folder, f"pid{self._count}")
        return Prepared(self._wrap(wrapper, list(build(pid_path))), self.make_tree(), pid_path)

    def make_tree(self) -> str:
        """The path of a new repository: agent-relay has one session in each."""
        tree = tempfile.mkdtemp(prefix="tree-", dir=self.folder)
        subprocess.run(["git", "init", "--quiet", tree], env=self.env, check=True)
        return tree

    def open(self, prepared: Prepared) -> Session:
        """A command on a terminal of its own."""
        session = Session(prepared.argv, env=self.env, pid_path=prepared.pid_path, cwd=prepared.tree)
        self._sessions.append(session)
        return session

    def stop(self, session: Session) -> None:
        """The session of agent-relay is over, with all of its agents."""
        subprocess.run([*COMMAND, "stop"], env=self.env, cwd=session.cwd, capture_output=True, check=True)
        self.end(session)

    def end(self, session: Session) -> None:
        """That one is over."""
        self._sessions.remove(session)
        session.close()

    def _wrap(self, wrapper: str, argv: list[str]) -> list[str]:
        path = os.path.join(self.folder, f"{wrapper}{self._count}")
        match wrapper:
            case "script":
                return ["script", "-q", "-c", shlex.join(argv), os.devnull]
            case "dtach":
                return ["dtach", "-A", path, "-E", "-z", "-r", "none", *argv]
            case "tmux":
                conf = os.path.join(self.folder, "tmux.conf")
                return [
                    "tmux",
                    "-S",
                    os.path.join(self.folder, "tmux"),
                    "-f",
                    conf,
                    "new-session",
                    shlex.join(argv),
                ]
            case "screen":
                return ["screen", "-c", os.path.join(self.folder, "screenrc"), "-S", f"b{self._count}", *argv]
            case "relay":
                return [*COMMAND, AGENT, "--", "run", *argv]
        return argv

    def attach(self, first: Session) -> Session:
        """One more terminal on the session of agent-relay that `first` began."""
        session = Session([*COMMAND, "attach"], env=self.env, pid_path=first.pid_path, cwd=first.cwd)
        self._sessions.append(session)
        return session

    def find_daemon(self) -> int | None:
        """The pid of this world's daemon."""
        return find_daemon_pid(get_folders(self.env))

    def find_holder(self, session: Session) -> int:
        """The pid of the holder of a session of agent-relay: its program's parent."""
        with open(f"/proc/{session.program_pid}/stat", encoding="ascii", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])

    def end_daemon(self) -> None:
        """No daemon runs; the next command starts one."""
        if pid := self.find_daemon():
            handle = os.pidfd_open(pid)
            os.kill(pid, signal.SIGTERM)
            select.select([handle], [], [], 30)
            os.close(handle)

    def hold(self, argv: list[str], leg_folder: str, *, is_watched: bool = True) -> StartedHolder:
        """A leg with that program, watched as the daemon watches it."""
        os.mkdir(leg_folder, 0o700)
        lock = os.open(os.path.join(leg_folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        spec = HolderSpec(
            argv=argv,
            env=self.env,
            cwd=self.folder,
            leg_folder=leg_folder,
            rows=ROWS,
            cols=COLS,
            lock_fd=lock,
            library=find_library() or "",
            linger_s=1.0,
        )
        started = start_holder(spec)
        os.close(lock)
        if is_watched:
            self.watch([leg_folder])
        return started

    def watch(self, leg_folders: list[str]) -> int:
        """Read these legs' screens and look for limits whenever they settle, in one process; its pid."""
        watcher = subprocess.Popen([sys.executable, WATCHER, *leg_folders], cwd=ROOT, stdout=subprocess.PIPE)
        assert watcher.stdout is not None
        watcher.stdout.readline()
        self._watchers.append(watcher)
        return watcher.pid

    def close(self) -> None:
        """Everything started here ends."""
        self.end_daemon()
        for session in list(self._sessions):
            with contextlib.suppress(OSError, ValueError):
                self.end(session)
        subprocess.run(
            ["tmux", "-S", os.path.join(self.folder, "tmux"), "kill-server"], capture_output=True, check=False
        )
        for watcher in self._watchers:
            watcher.terminate()
            watcher.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


def build_program(what: str, pid_path: str, *rest: str) -> list[str]:
    """The command line of one of `programs`."""
    return [sys.executable, "-I", "-S", PROGRAMS, what, pid_path, *rest]


@contextlib.contextmanager
def open_world() -> Iterator[World]:
    """A world that ends with its block."""
    world = World()
    try:
        yield world
    finally:
        world.close()
