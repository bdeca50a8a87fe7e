"""A world for the real agents: own HOME, git project with a failing test, provider, network of its own."""

import atexit
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_relay.system.disk.folders import get_folders
from agent_relay.system.processes import list_pids
from tests.support import real_seeds
from tests.support.install_clis import get_clis_folder, get_path_folders
from tests.support.preloaded import Command, Running
from tests.support.provider.script import write_script
from tests.support.provider.steps import Step
from tests.support.real_terminal import COLS, ROWS, Terminal
from tests.support.world_end import end_processes, end_world, find_belonging

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CALC = "def add(a, b):\n    return a - b\n"
TEST = """import unittest

from calc import add


class AddTest(unittest.TestCase):
    def test_add_of_two_and_three_is_five(self):
        self.assertEqual(add(2, 3), 5)


if __name__ == "__main__":
    unittest.main()
"""
TEST_COMMAND = "python3 -m unittest test_calc"
# codex refuses helpers below /tmp, and a Unix socket's path has room for 107 bytes
# four agents in turns, each of which needs up to a minute to start on a machine with too much to do
RUN_S = 600
HOMES = "/var/tmp"  # noqa: S108  a fresh private folder is made below it


@dataclass
class World:
    """One test's world; `namespaces` are the paths of those that its network is in."""

    root: str
    address: str = ""
    namespaces: tuple[str, ...] = ()
    google_login: bool = False
    _takes: dict[str, Any] = field(default_factory=dict)
    _terminals: list[Terminal] = field(default_factory=list)
    _heard: list[dict[str, Any]] = field(default_factory=list)
    _heard_bytes: int = 0

    @property
    def prefix(self) -> list[str]:
        """What starts a command inside the world's network."""
        if not self.namespaces:
            return []
        entered = [f"--{os.path.basename(path)}={path}" for path in self.namespaces]
        return ["nsenter", "--preserve-credentials", *entered, "--"]

    @property
    def home(self) -> str:
        """HOME of everything that runs here."""
        return f"{self.root}/home"

    @property
    def project(self) -> str:
        """The git project the agents work in."""
        return f"{self.root}/project"

    @property
    def script(self) -> str:
        """The provider's script file."""
        return f"{self.root}/script.json"

    @property
    def log(self) -> str:
        """The provider's log file."""
        return f"{self.root}/requests.jsonl"

    def env(self) -> dict[str, str]:
        """The clean environment of a user here."""
        folders = [*get_path_folders(get_clis_folder(dict(os.environ))), "/usr/local/bin", "/usr/bin", "/bin"]
        plain = {
            "PATH": os.pathsep.join(folders),
            "HOME": self.home,
            "TMPDIR": f"{self.root}/temporary",
            "USER": "dev",
            "SHELL": "/bin/sh",
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONPATH": CHECKOUT,
            "AGENT_RELAY_HOME": f"{self.root}/relay",
        }
        closed = (
            dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9") if not self.namespaces else {}
        )
        quiet = {"NO_PROXY": "127.0.0.1"} if closed else {}
        return plain | closed | quiet | real_seeds.build_env(self.address, google_login=self.google_login)

    def play(self, agent: str, *steps: Step) -> None:
        """From its next request on, `agent` gets `steps`, one for each request of its conversation."""
        take = self._takes.get(agent, {"take": 0})["take"] + 1
        self._takes[agent] = {"take": take, "steps": list(steps)}
        write_script(self.script, self._takes)

    def requests(self, agent: str) -> list[dict[str, Any]]:
        """The requests of `agent`'s conversation so far, oldest first: `at`, `text`, `body`, `step`."""
        return [row for row in self.read_log() if row["main"] and row["agent"] == agent]

    def read_log(self) -> list[dict[str, Any]]:
        """Everything the provider was asked so far, oldest first."""
        with open(self.log, "rb") as file:
            file.seek(self._heard_bytes)
            # A line that is being written is read when it is whole.
            whole, newline, _ = file.read().rpartition(b"\n")
        self._heard_bytes += len(whole + newline)
        self._heard += [json.loads(line) for line in whole.splitlines()]
        return self._heard

    def open(
        self,
        argv: list[str] | Command,
        env: dict[str, str] | None = None,
        *,
        size: tuple[int, int] = (ROWS, COLS),
    ) -> Terminal:
        """A user's terminal in the project with `argv` running inside the world's network."""
        if not isinstance(argv, Command):
            argv = [*self.prefix, *argv]
        terminal = Terminal(argv, env=env or self.env(), cwd=self.project, size=size)
        self._terminals.append(terminal)
        return terminal

    def run(self, argv: list[str] | Command, *, limit_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in the project and the world's network; ours has no terminal anywhere."""
        if isinstance(argv, Command):
            return finish(self.begin(argv), limit_s=limit_s)
        return subprocess.run(
            [*self.prefix, *argv],
            env=self.env(),
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def begin(self, command: Command) -> Running:
        """A command of ours under way, without a terminal anywhere."""
        return Running(command, leads=True)

    def relay(self, *words: str, env: Mapping[str, str] | None = None) -> Command:
        """A command of our own product."""
        return Command(words, env or self.env(), self.project, self.namespaces)

    def list_pids(self) -> list[int]:
        """The processes in the world's network, which others may share."""
        if not self.namespaces:
            return list_pids()
        own = os.stat(self.namespaces[-1]).st_ino
        found = []
        for pid in list_pids():
            with contextlib.suppress(OSError):
                if os.stat(f"/proc/{pid}/ns/net").st_ino == own:
                    found.append(pid)
        return found

    def find_processes(self) -> dict[int, str]:
        """Every living process of this world but the provider, by pid, with its command line."""
        found = {}
        for pid in self.list_pids():
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    ours = f"HOME={self.home}".encode() in file.read()
                with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
                    line = file.read().replace("\0", " ")
            except OSError:
                continue
            if ours and line:
                found[pid] = line
        return found

    def close(self) -> None:
        """End every program that runs here, whoever started it."""
        for terminal in self._terminals:
            terminal.close()
        end_processes(self.find_all)

    def find_all(self) -> dict[int, str]:
        """The same as `find_processes`, and the holders, whose environment is empty."""
        legs = get_folders(self.env()).legs
        return find_belonging(self.root, home=self.home, legs=legs, pids=self.list_pids())


def finish(running: Running, *, limit_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
    """What became of a command, as text."""
    done = running.finish(limit_s)
    out, err = (said.decode("utf-8", "replace") for said in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def write_project(folder: str) -> None:
    """A git project with one commit: `calc.py` is wrong and `test_calc.py` shows it."""
    os.makedirs(folder)
    files = {"calc.py": CALC, "test_calc.py": TEST, "README.md": "# calc\n\nAdds numbers.\n"}
    files[".gitignore"] = "__pycache__/\n"
    for name, text in files.items():
        with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
            file.write(text)
    env = {"PATH": os.defpath, "HOME": folder, "GIT_CONFIG_NOSYSTEM": "1"}
    me = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "A wrong sum"]):
        subprocess.run(["git", *me, *words], cwd=folder, env=env, check=True)


class _Provider:
    """The provider of all worlds of this process, in a network of its own where that is allowed."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        kinds = choose_namespaces()
        self._process = subprocess.Popen(
            [*unshare(kinds), sys.executable, "-m", "tests.support.provider", HOMES],
            cwd=CHECKOUT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.end)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        self.namespaces = tuple(f"/proc/{self._process.pid}/ns/{kind}" for kind in kinds)

    def end(self) -> None:
        if os.getpid() == self._owner:
            self._process.communicate(timeout=60)


@functools.cache
def _get_provider() -> _Provider:
    return _Provider()


def choose_namespaces() -> tuple[str, ...]:
    """What a network of its own takes here: one namespace, or a user's, too; nothing if both are refused."""
    for kinds in (("net",), ("user", "net")):
        with contextlib.suppress(OSError):
            if subprocess.run([*unshare(kinds), "true"], capture_output=True, check=False).returncode == 0:
                return kinds
    return ()


def unshare(kinds: tuple[str, ...]) -> list[str]:
    """What starts a command in new namespaces of these kinds."""
    if not kinds:
        return []
    return ["unshare", *(f"--{kind}" for kind in kinds), *(["--map-root-user"] if "user" in kinds else [])]


@contextlib.contextmanager
def open_world(*, google_login: bool = False) -> Iterator[World]:
    """A world from nothing; it is gone afterwards, with everything that ran in it."""
    provider = _get_provider()
    root = tempfile.mkdtemp(prefix="ar-real-", dir=HOMES)
    address = f"http://127.0.0.1:{provider.port}/{os.path.basename(root)}"
    world = World(root, address, provider.namespaces, google_login=google_login)
    try:
        for folder in (world.home, f"{world.root}/temporary"):
            os.makedirs(folder)
        write_project(world.project)
        write_script(world.script, {})
        with open(world.log, "xb"):
            pass
        real_seeds.seed_claude(world.home, world.project)
        real_seeds.seed_codex(world.home, world.project, world.address)
        real_seeds.seed_gemini(world.home, world.project, google_login=google_login)
        real_seeds.seed_opencode(world.home, world.address)
        yield world
    finally:
        world.close()
        end_world(world.root, world.find_all)
