"""A user at terminals, with two scripted agents."""

import json
import os
import sys

import pexpect

from tests.faces.cli_run import World
from tests.support.measured import measured

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


class Terminals:
    """Terminals of one user whose two agents are scripted."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.opened: list[pexpect.spawn[str]] = []
        os.makedirs(f"{world.home}/config", mode=0o700)
        self.configure('order = ["demo", "understudy"]\n')
        for name, scenes in PLAYS.items():
            with open(f"{world.home}/{name}.json", "w", encoding="utf-8") as stream:
                json.dump({"scenes": scenes}, stream)

    def configure(self, text: str) -> None:
        """The user's configuration is `text`."""
        with open(f"{self.world.home}/config/config.toml", "w", encoding="utf-8") as stream:
            stream.write(text)

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

    def open(self, *words: str) -> "pexpect.spawn[str]":
        """A terminal on which `agent-relay` runs with `words`."""
        return self.spawn("-m", "agent_relay", *words)

    def spawn(self, *words: str) -> "pexpect.spawn[str]":
        """A terminal on which Python runs with `words`."""
        child = pexpect.spawn(
            sys.executable,
            list(words),
            cwd=self.world.cwd,
            env=self.environ() | measured(),
            encoding="utf-8",
            timeout=90,
            dimensions=(24, 90),
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
