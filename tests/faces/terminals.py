"""A user at terminals, with two scripted agents."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

import pexpect
import pexpect.fdpexpect

from agent_relay.terminal.holder.child import open_pty, set_size
from tests.faces.cli_run import World
from tests.support.measured import measured
from tests.support.preloaded import Command

ROWS, COLS = 24, 90
LIMIT_S = 90
LAST_S = 10
"""How long a program may still take to end once its terminal is closed."""
PLAYS = {
    "demo": [
        {
            "when": "limit",
            "do": [{"wait_s": 0.3, "limit": "You've hit your session limit", "resets_in_s": 600}],
        },
        {"when": "leave", "do": [{"exit": 7}]},
        {"again": True, "do": [{"say": "demo heard you"}]},
    ],
    "understudy": [
        {"when": "handoff-context", "do": [{"say": "understudy goes on"}]},
        {
            "when": "limit",
            "do": [{"wait_s": 0.3, "limit": "You've hit your session limit", "resets_in_s": 900}],
        },
        {"again": True, "do": [{"say": "understudy heard you"}]},
    ],
}


class Spawned(pexpect.fdpexpect.fdspawn):  # type: ignore[misc]  # pexpect has no types
    """A terminal on which an `agent-relay` command runs, with what `pexpect.spawn` says of its program."""

    def __init__(self, command: Command, *, rows: int = ROWS, cols: int = COLS) -> None:
        master, slave = open_pty(rows=rows, cols=cols)
        self._program = command.start_at(slave)
        os.close(slave)
        self.pid = self._program.pid
        super().__init__(master, timeout=LIMIT_S, encoding="utf-8")

    def isalive(self) -> bool:
        """Whether the program has not ended yet."""
        return self._program.poll() is None

    def setwinsize(self, rows: int, cols: int) -> None:
        """The terminal is another size."""
        set_size(self.child_fd, rows=rows, cols=cols)

    def close(self, *, force: bool = True) -> None:
        """The terminal is gone, and with it the program, whose status is known then."""
        super().close()
        try:
            status = self._program.wait(timeout=LAST_S)
        except subprocess.TimeoutExpired:
            if not force:
                raise
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            status = self._program.wait()
        self.exitstatus, self.signalstatus = (status, None) if status >= 0 else (None, -status)


class Terminals:
    """Terminals of one user whose two agents are scripted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened: list[Spawned | pexpect.spawn[str]] = []
        world.configure('order = ["demo", "understudy"]\n')
        for name, scenes in PLAYS.items():
            with open(f"{world.home}/{name}.json", "w", encoding="utf-8") as stream:
                json.dump({"scenes": scenes}, stream)

    def environ(self) -> dict[str, str]:
        """What the commands and, through them, the agents see."""
        python = os.path.dirname(sys.executable)
        return {
            **self.world.environ(),
            "PATH": f"{python}:{os.defpath}",
            "TERM": "xterm-256color",
            "DEMO_AGENT_SCREENPLAYS": self.world.home,
            "DEMO_AGENT_HOME": f"{self.world.home}/agents",
        }

    def open(self, *words: str) -> Spawned:
        """A terminal on which `agent-relay` runs with `words`, forked from what has loaded it."""
        child = Spawned(Command(words, self.environ(), self.world.cwd))
        self.opened.append(child)
        return child

    def spawn(
        self, *words: str, cols: int = COLS, more: Mapping[str, str] = MappingProxyType({})
    ) -> "pexpect.spawn[str]":
        """A terminal on which Python runs with `words`; `more` are variables."""
        child = pexpect.spawn(
            sys.executable,
            list(words),
            cwd=self.world.cwd,
            env=self.environ() | measured() | more,
            encoding="utf-8",
            timeout=LIMIT_S,
            dimensions=(ROWS, cols),
        )
        child.delaybeforesend = None
        self.opened.append(child)
        return child

    def read_status(self) -> list[dict[str, object]]:
        """The sessions `status` shows."""
        view = json.loads(self.world.run("status", "--json").out)
        sessions: list[dict[str, object]] = view["sessions"]
        return sessions

    def close(self) -> None:
        """Nothing of the user runs any more."""
        # One by one: of several sessions, none is meant by no name.
        for session in self.read_status():
            self.world.run("stop", str(session["session"]))
        for child in self.opened:
            child.close(force=True)
        self.world.run("daemon", "stop")


def see(child: "Spawned | pexpect.spawn[str]", *texts: str, typed: str = "") -> None:
    """Each of these texts comes, one after the other, once `typed` was typed."""
    child.send(typed)
    for text in texts:
        child.expect_exact(text)


def press(child: "Spawned | pexpect.spawn[str]", key: str, seen: object) -> None:
    """Press `key` until it counts: one that comes right after the resting screen does is not meant for it."""
    for _ in range(30):
        child.send(key)
        if child.expect([seen, pexpect.TIMEOUT], timeout=3) == 0:
            return
    raise AssertionError(f"{key} was not answered with {seen}")
