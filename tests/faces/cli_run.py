"""Runs the command line as a user does: a process of its own, in a home of its own."""

import os
import subprocess
import sys
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.events.session import Body
from agent_relay.store.project import make_session_folder
from agent_relay.store.session_index import write_entry
from agent_relay.store.session_journals import SessionJournal
from tests.house import tree
from tests.support import preloaded
from tests.support.handoffs import git
from tests.support.measured import measured
from tests.support.seats import Done

LIMIT_S = 180
ROOM = 4096
"""How many characters a forked command's line may have."""


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

    def configure(self, text: str) -> None:
        """The user's configuration is `text`."""
        os.makedirs(f"{self.home}/config", mode=0o700, exist_ok=True)
        with open(f"{self.home}/config/config.toml", "w", encoding="utf-8") as stream:
            stream.write(text)

    def plant(self, session: str, *lines: tuple[datetime, Body]) -> str:
        """The path of the journal of a session of the user's here, which holds these lines."""
        write_entry(f"{self.home}/state/sessions", session, root=self.cwd, cwd=self.cwd)
        path = f"{make_session_folder(self.cwd, session)}/journal.jsonl"
        with closing(SessionJournal(path)) as journal:
            for at, body in lines:
                journal.append(body, at=at, generation=1, durable=False)
        return path

    def spoil_ledger(self) -> str:
        """The user's ledger is a link to itself, there and not to be read; what is said of that."""
        os.makedirs(f"{self.home}/state", mode=0o700)
        os.symlink("ledger.json", f"{self.home}/state/ledger.json")
        return f"cannot read {self.home}/state/ledger.json: Too many levels of symbolic links"

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
