"""`agent-relay run` in front of somebody: laid out, ended by a key, and by a terminal that goes away."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.support.measured import measured
from tests.support.preloaded import Command
from tests.support.real_terminal import Terminal
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import find_agents, run_world

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents and a daemon."""
    with run_world() as made:
        yield made


def sit_down(world: RelayWorld, *words: str) -> Terminal:
    """A terminal on which a turn runs."""
    return Terminal(Command(["run", *words], world.environ, world.project))


def test_ctrl_c_ends_the_agent_and_shows_its_last_words(world: RelayWorld) -> None:
    """What the agent said before stays readable, and nothing works on in the dark."""
    terminal = sit_down(world, "demo", "slow")
    terminal.wait_for("I begin")
    terminal.send("\x03")
    assert terminal.wait_exit(60) == 130
    assert "→ demo was stopped" in terminal.screen
    assert "Its next turn: agent-relay run " in terminal.screen
    assert terminal.modes_left_on() == []
    wait_until(lambda: find_agents(world) == [], "the agent is gone")
    terminal.close()


def test_a_terminal_that_goes_away_ends_the_agent_too(world: RelayWorld) -> None:
    """A closed window must not leave an agent editing files that nobody watches."""
    ours, theirs = pty.openpty()
    command = ["setsid", "--ctty", sys.executable, "-m", "agent_relay", "run", "demo", "slow"]
    process = subprocess.Popen(
        command,
        cwd=world.project,
        env=world.environ | measured(),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"I begin" not in shown:
        shown += os.read(ours, 4096)
    os.close(ours)
    process.wait(timeout=60)
    wait_until(lambda: find_agents(world) == [], "the agent is gone")


def test_a_long_answer_comes_whole(world: RelayWorld) -> None:
    """Two and a half megabytes on one line, to the last of them."""
    terminal = sit_down(world, "demo", "much")
    terminal.wait_for("Its next turn: agent-relay run ")
    assert terminal.wait_exit(60) == 0
    assert terminal.raw.count(b"0") >= 250_000
    terminal.close()
