"""Runs the command line as a user does: a process of its own, in a home of its own."""

import os
import subprocess
import sys
from dataclasses import dataclass

from tests.house import tree
from tests.support import preloaded
from tests.support.handoffs import git
from tests.support.measured import measured

LIMIT_S = 180
ROOM = 4096
"""How many characters a forked command's line may have."""


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


@dataclass(frozen=True, slots=True)
class World:
    """One user's machine: `home` (relay's), `cwd`, and a PATH without agents."""

    home: str
    cwd: str

    def environ(self) -> dict[str, str]:
        """What the commands see."""
        return {
            "PATH": os.defpath,
            "HOME": self.home,
            "AGENT_RELAY_HOME": self.home,
            "PYTHONPATH": tree.CHECKOUT,
            "LANG": "C.UTF-8",
            "TZ": "UTC",
        }

    def run(self, *words: str) -> Done:
        """The command's end; standard input is empty, no terminal is there."""
        return self.run_with({}, *words)

    def run_with(self, variables: dict[str, str], *words: str) -> Done:
        """The same with more variables. Python is started for one it heeds itself, and for long words."""
        own = self.environ()
        env = own | variables
        heeded = [name for name in variables if name.startswith("PYTHON") and own.get(name) != env[name]]
        if heeded or len("".join(words)) > ROOM:
            done = subprocess.run(
                [sys.executable, "-m", "agent_relay", *words],
                env=env | measured(),
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LIMIT_S,
                check=False,
            )
        else:
            done = preloaded.run(words, env=env, cwd=self.cwd, timeout=LIMIT_S)
        return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def create_world(folder: str) -> World:
    """A world below `folder`, private as a home is."""
    home, cwd = os.path.join(folder, "home"), os.path.join(folder, "work")
    os.makedirs(home, mode=0o700)
    os.makedirs(cwd)
    return World(home, cwd)


def create_repository(folder: str) -> World:
    """A world whose folder is a repository with one commit."""
    made = create_world(folder)
    git(made.cwd, "init")
    git(made.cwd, "commit", "--allow-empty", "-m", "one")
    return made
