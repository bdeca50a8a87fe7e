"""`agent-relay run` in a world of two scripted agents, for tests."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pexpect
from jsonschema import Draft202012Validator

from agent_relay.domain.protocol.run_output import build_run_schema
from agent_relay.domain.state import State
from tests.house import tree
from tests.support import preloaded
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, relay_world, wait_until

LIMIT = {"limit": "You've hit your session limit", "resets_in_s": 7200}
SCENES = [
    {"when": "out", "do": [{"say": "I try."}, LIMIT]},
    {"when": "slow", "again": True, "do": [{"say": "I begin."}, {"wait_s": 600}, {"say": "I end."}]},
    {"when": "soon", "again": True, "do": [{"say": "I begin."}, {"wait_s": 6}, {"say": "I end."}]},
    {
        "when": "gate",
        "do": [{"say": "I begin."}, {"run": "until [ -e go ]; do sleep 0.1; done"}, {"say": "I end."}],
    },
    {"when": "fail", "do": [{"exit": 4}]},
    {"when": "idle", "do": []},
    {"when": "much", "do": [{"say": "0123456789" * 250_000}]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


@contextmanager
def run_world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=SCENES)
        made.environ["PYTHONPATH"] = tree.CHECKOUT
        made.start_daemon()
        yield made


def start(world: RelayWorld, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """A run under way, without a terminal."""
    command = [sys.executable, "-m", "agent_relay", "run", *words]
    streams = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, cwd=world.project, env=world.environ, **streams)


def run(world: RelayWorld, *words: str, given: str = "") -> tuple[int, str, str]:
    """How a run ended: its status, what it said and what was said about it."""
    env = world.environ
    done = preloaded.run(["run", *words], env=env, cwd=world.project, given=given.encode())
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def read_lines(out: str) -> list[dict[str, Any]]:
    """The events printed, each of which the published schema allows."""
    allowed = Draft202012Validator(build_run_schema())
    lines: list[dict[str, Any]] = [json.loads(line) for line in out.splitlines()]
    for line in lines:
        allowed.validate(line)
    return lines


def find_agents(world: RelayWorld) -> list[str]:
    """The command lines of living scripted agents."""
    return [line for line in world.processes().values() if "--headless" in line]


def find_sessions(world: RelayWorld) -> list[str]:
    """The project's sessions, oldest first."""
    folder = f"{world.project}/.agent-relay/sessions"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [name for name in names if os.path.exists(f"{folder}/{name}/journal.jsonl") and world.events(name)]


def wait_begun(world: RelayWorld) -> str:
    """The newest session once its agent works."""
    wait_until(lambda: bool(find_sessions(world)), "a session")
    session = find_sessions(world)[-1]
    world.wait_for(session, lambda found: found.state is State.BUSY, "the agent works")
    return session


def run_on_terminal(world: RelayWorld, *words: str) -> tuple[int, str]:
    """How a run on a terminal ended, and everything the terminal was given."""
    command = [sys.executable, "-m", "agent_relay", "run", *words]
    environ = {**world.environ, "TERM": "xterm-256color"}
    child = pexpect.spawn(
        command[0], command[1:], cwd=world.project, env=environ, encoding="utf-8", dimensions=(24, 100)
    )
    given: str = child.read()
    child.close()
    return int(child.exitstatus or 0), given.replace("\r\n", "\n")
