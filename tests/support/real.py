"""A world for the real agents: own HOME, git project with a failing test, provider, network of its own."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_relay.system.disk.folders import get_folders
from tests.support import real_seeds
from tests.support.install_clis import get_clis_folder, get_path_folders
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
    """One test's world; `prefix` starts a command inside its network."""

    root: str
    address: str = ""
    prefix: tuple[str, ...] = ()
    google_login: bool = False
    _takes: dict[str, Any] = field(default_factory=dict)
    _terminals: list[Terminal] = field(default_factory=list)

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
        closed = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9") if not self.prefix else {}
        quiet = {"NO_PROXY": "127.0.0.1"} if closed else {}
        return plain | closed | quiet | real_seeds.build_env(self.address, google_login=self.google_login)

    def play(self, agent: str, *steps: Step) -> None:
        """From its next request on, `agent` gets `steps`, one for each request of its conversation."""
        take = self._takes.get(agent, {"take": 0})["take"] + 1
        self._takes[agent] = {"take": take, "steps": list(steps)}
        write_script(self.script, self._takes)

    def requests(self, agent: str) -> list[dict[str, Any]]:
        """The requests of `agent`'s conversation so far, oldest first: `at`, `text`, `body`, `step`."""
        with open(self.log, "rb") as file:
            # Read at once: of a line that is being written, its second half would be taken for another one.
            # It may end within a character.
            rows = [json.loads(line) for line in file.read().split(b"\n")[:-1]]
        return [row for row in rows if row["main"] and row["agent"] == agent]

    def open(
        self, argv: list[str], env: dict[str, str] | None = None, *, size: tuple[int, int] = (ROWS, COLS)
    ) -> Terminal:
        """A user's terminal in the project with `argv` running inside the world's network."""
        terminal = Terminal([*self.prefix, *argv], env=env or self.env(), cwd=self.project, size=size)
        self._terminals.append(terminal)
        return terminal

    def run(self, argv: list[str], *, limit_s: float = RUN_S) -> subprocess.CompletedProcess[str]:
        """Run a command to its end in the project, inside the world's network."""
        return subprocess.run(
            [*self.prefix, *argv],
            env=self.env(),
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )

    def relay(self, *words: str) -> list[str]:
        """The command line of our own product."""
        return [sys.executable, "-m", "agent_relay", *words]

    def find_processes(self) -> dict[int, str]:
        """Every living process of this world but the provider, by pid, with its command line."""
        found = {}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    ours = f"HOME={self.home}".encode() in file.read()
                with open(f"/proc/{name}/cmdline", encoding="utf-8", errors="replace") as file:
                    line = file.read().replace("\0", " ")
            except OSError:
                continue
            if ours and line:
                found[int(name)] = line
        return found

    def close(self) -> None:
        """End every program that runs here, whoever started it."""
        for terminal in self._terminals:
            terminal.close()
        end_processes(self.find_all)

    def find_all(self) -> dict[int, str]:
        """The same as `find_processes`, and the holders, whose environment is empty."""
        return find_belonging(self.root, home=self.home, legs=get_folders(self.env()).legs)


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


def choose_namespace() -> tuple[list[str], Callable[[int], tuple[str, ...]]]:
    """How to start the provider in a network of its own, and how others join it; both empty if refused."""
    root = ["unshare", "--net"], lambda pid: ("nsenter", "--net", "--target", str(pid), "--")
    user = (
        ["unshare", "--user", "--map-root-user", "--net"],
        lambda pid: ("nsenter", "--user", "--preserve-credentials", "--net", "--target", str(pid), "--"),
    )
    for start, join in (root, user):
        with contextlib.suppress(OSError):
            if subprocess.run([*start, "true"], capture_output=True, check=False).returncode == 0:
                return start, join
    return [], lambda _pid: ()


@contextlib.contextmanager
def open_world(*, google_login: bool = False) -> Iterator[World]:
    """A world from nothing; it is gone afterwards, with everything that ran in it."""
    world = World(root=tempfile.mkdtemp(prefix="ar-real-", dir=HOMES), google_login=google_login)
    start, join = choose_namespace()
    for folder in (world.home, f"{world.root}/temporary"):
        os.makedirs(folder)
    write_project(world.project)
    write_script(world.script, {})
    provider = subprocess.Popen(
        [*start, sys.executable, "-m", "tests.support.provider", world.script, world.log],
        cwd=CHECKOUT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert provider.stdout is not None
        world.address = f"http://127.0.0.1:{int(provider.stdout.readline())}"
        world.prefix = join(provider.pid)
        real_seeds.seed_claude(world.home, world.project)
        real_seeds.seed_codex(world.home, world.project, world.address)
        real_seeds.seed_gemini(world.home, world.project, google_login=google_login)
        real_seeds.seed_opencode(world.home, world.address)
        yield world
    finally:
        world.close()
        provider.communicate(timeout=60)
        end_world(world.root, world.find_all)
