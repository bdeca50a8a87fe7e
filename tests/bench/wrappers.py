"""The ways to have a program on a terminal that are measured side by side, ours among them."""

import contextlib
import fcntl
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from agent_relay.system.emulator_library import find_library
from agent_relay.system.holder.spec import HolderSpec
from agent_relay.system.holder_client import Started, start_holder
from tests.bench.programs import READY
from tests.bench.session import COLS, ROWS, Session

NAMES = ("direct", "script", "dtach", "tmux", "screen", "relay")
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs.py")
WATCHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "watcher.py")
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_ATTACH = """
import sys
sys.path.insert(0, sys.argv[2])
from agent_relay.client.attach import attach
attach(sys.argv[1], on_relay_key=lambda line: [])
"""


class World:
    """A folder for sockets and settings, and everything started in it; `watched` holders have a detector."""

    def __init__(self) -> None:
        self.folder = tempfile.mkdtemp(prefix="bench-")
        self.env = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": self.folder,
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "SCREENDIR": os.path.join(self.folder, "screens"),
        }
        self._count = 0
        self._sessions: list[Session] = []
        self._watchers: list[subprocess.Popen[bytes]] = []
        os.mkdir(self.env["SCREENDIR"], 0o700)
        self._write(
            "tmux.conf",
            "set -g status off\nset -s exit-empty off\nset -s escape-time 0\nset -g history-limit 2000\n",
        )
        self._write("screenrc", "startup_message off\nautodetach on\ndefscrollback 2000\n")

    def _write(self, name: str, text: str) -> str:
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def start(self, wrapper: str, *program: str) -> Session:
        """That program of ours under that wrapper, ready. A second one under tmux shares its server."""
        self._count += 1
        pid_path = os.path.join(self.folder, f"pid{self._count}")
        argv = [sys.executable, "-I", "-S", PROGRAMS, program[0], pid_path, *program[1:]]
        session = Session(self._wrap(wrapper, argv), env=self.env, pid_path=pid_path)
        self._sessions.append(session)
        session.wait_for(READY)
        return session

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
                self.hold(argv, path)
                return self.attach_argv(path)
        return argv

    def attach_argv(self, leg_folder: str) -> list[str]:
        """Our client on a leg that is held."""
        return [sys.executable, "-c", _ATTACH, os.path.join(leg_folder, "sock"), ROOT]

    def attach(self, leg_folder: str, pid_path: str) -> Session:
        """One more terminal on a leg."""
        session = Session(self.attach_argv(leg_folder), env=self.env, pid_path=pid_path)
        self._sessions.append(session)
        return session

    def hold(self, argv: list[str], leg_folder: str, *, is_watched: bool = True) -> Started:
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


@contextlib.contextmanager
def open_world() -> Iterator[World]:
    """A world that ends with its block."""
    world = World()
    try:
        yield world
    finally:
        world.close()
