"""A person at a terminal on which `agent-relay` runs in a world of their own."""

import contextlib
import json
import os
import shutil
import sys
import termios
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from agent_relay.client.connection import find_daemon_pid
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.support import preloaded
from tests.support.measured import measured
from tests.support.person import Person, at_terminal
from tests.support.relay_world import CHECKOUT, RelayWorld, relay_world, wait_until

PLAYS = {
    "demo": [
        {
            "when": "limit",
            "do": [{"wait_s": 0.3, "limit": "You've hit your session limit", "resets_in_s": 3600}],
        },
        {"again": True, "do": [{"say": "demo heard you"}]},
    ],
    "understudy": [
        {"when": "handoff-context", "do": [{"say": "understudy goes on"}]},
        {"again": True, "do": [{"say": "understudy heard you"}]},
    ],
}
AGENTS = ("demo", "understudy")


@contextlib.contextmanager
def seated_world(*, order: tuple[str, ...] = AGENTS) -> Iterator[RelayWorld]:
    """A world with scripted agents, the counter among the user's own adapters, and our code on its path."""
    with relay_world(order=order) as world:
        shutil.copytree(
            os.path.join(CHECKOUT, "tests", "support", "counter"), f"{world.folders.config}/adapters/counter"
        )
        plays = f"{world.folder}/plays"
        os.makedirs(plays)
        for name, scenes in PLAYS.items():
            with open(f"{plays}/{name}.json", "w", encoding="utf-8") as stream:
                json.dump({"scenes": scenes}, stream)
        world.environ |= {
            "DEMO_AGENT_SCREENPLAYS": plays,
            "DEMO_AGENT_HOME": f"{world.home}/agents",
        }
        yield world


def relay(world: RelayWorld, *words: str, **extra: str) -> list[str]:
    """The arguments that run `agent-relay` with `words` in the project, with nothing of our environment."""
    environ = {**_build_environ(world, extra), **measured()}
    variables = [f"{name}={value}" for name, value in environ.items()]
    return ["env", "-i", "-C", world.project, *variables, sys.executable, "-m", "agent_relay", *words]


def _build_environ(world: RelayWorld, more: Mapping[str, str]) -> dict[str, str]:
    return {**world.environ, "PYTHONPATH": CHECKOUT, **more}


@contextlib.contextmanager
def seat(
    world: RelayWorld,
    *words: str,
    rows: int = 30,
    cols: int = 100,
    shows: str = "",
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Person]:
    """A person at a terminal of that size, having typed `agent-relay` and `words`, which `shows` this."""
    command = preloaded.Command(words, _build_environ(world, variables), world.project)
    with at_terminal(command, rows=rows, cols=cols) as person:
        if shows:
            person.wait_for(shows)
        yield person


def find_session(world: RelayWorld) -> str:
    """The one session of the project."""
    (name,) = os.listdir(f"{world.project}/.agent-relay/sessions")
    return name


def wait_for_daemon(world: RelayWorld, *, other_than: int = 0) -> int:
    """The pid of a daemon that listens, started by whoever starts one; asking starts none."""
    found = 0

    def listens() -> bool:
        nonlocal found
        found = find_daemon_pid(world.folders) or 0
        return found not in {0, other_than}

    wait_until(listens, "another daemon listens")
    return found


def assert_given_back(person: Person) -> None:
    """The person's terminal is as it was: every mode off, the line discipline their own."""
    fresh = Emulator(find_library() or "", 80, 24).modes()
    # Alternate scroll (1007) is saved and restored by the terminal itself, where it can.
    assert {**person.emulator.modes(), "1007": 0} == {**fresh, "1007": 0}
    assert termios.tcgetattr(person.slave) == person.before


def close_window(person: Person) -> None:
    """The person's terminal is gone; nobody reads it and nobody types."""
    os.close(person.master)
    person.master = os.eventfd(0)


@dataclass(frozen=True, slots=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str


def run(world: RelayWorld, *words: str, **extra: str) -> Done:
    """The end of `agent-relay` with `words`, where no terminal is there; `extra` are variables."""
    done = preloaded.run(words, env=_build_environ(world, extra), cwd=world.project)
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())
