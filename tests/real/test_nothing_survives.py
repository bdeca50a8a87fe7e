import os
import signal

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support import real_seeds
from tests.support.provider.steps import Step, Tool, call, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    LIMITS,
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
    wait_work,
)
from tests.support.relay_world import wait_until

TASK = "Write a page about marigolds."
COMMAND = "sleep 333"
IN_BACKGROUND = Tool(
    name="Bash", input={"command": COMMAND, "description": "Run it", "run_in_background": True}
)


def find_command(world: World) -> list[int]:
    """The processes of the command an agent ran, its shells included."""
    return [pid for pid, line in world.find_processes().items() if COMMAND in line]


def has_pids(found: Session) -> bool:
    """Whether the journal knows the processes of the leg that works."""
    leg = found.living_leg
    return leg is not None and leg.child_pid > 0 and leg.holder_pid > 0


def run_command(world: World, agent: str, *steps: Step) -> Terminal:
    """A terminal in which `agent` runs `COMMAND`."""
    real_seeds.free_hands(world.home)
    world.play(agent, *steps)
    terminal = world.open(world.relay(agent))
    wait_prompt(terminal, agent)
    type_line(terminal, TASK)
    terminal.wait_until(lambda: bool(find_command(world)), "the command to run")
    return terminal


def check_gone(world: World, terminal: Terminal) -> None:
    """Nothing of the command lives."""
    end = read_work(world)
    terminal.wait_until(
        lambda: not find_command(world), f"{world.find_processes()} to be gone after {end.state}"
    )


@pytest.mark.parametrize("agent", AGENTS)
def test_a_handoff_in_the_middle_of_a_command_ends_the_command(world: World, agent: str) -> None:
    """A test run left behind would change files under the successor's hands."""
    second = AGENTS[(AGENTS.index(agent) + 1) % len(AGENTS)]
    order(world, agent, second)
    terminal = run_command(world, agent, call(shell(agent, COMMAND)))
    world.play(second, say("I pick up where it stopped."))
    done = world.run(world.relay(second, "--json"))
    assert done.returncode == 0, done.stderr
    wait_heard(world, terminal, second)
    check_gone(world, terminal)
    wait_taken_over(world, terminal, second)


def test_a_limit_ends_what_the_agent_left_running_in_the_background(world: World) -> None:
    """The successor is told what was running; it may start it again, and must not meet it."""
    order(world, "claude", "codex")
    world.play("codex", say("I pick up where it stopped."))
    terminal = run_command(world, "claude", call(IN_BACKGROUND), LIMITS["claude"])
    wait_heard(world, terminal, "codex")
    check_gone(world, terminal)
    wait_taken_over(world, terminal, "codex")


def test_a_stopped_session_leaves_no_command_behind(world: World) -> None:
    """`stop` in the middle of a turn is how people get their machine back."""
    order(world, "claude", "codex")
    terminal = run_command(world, "claude", call(shell("claude", COMMAND)))
    done = world.run(world.relay("stop"))
    assert done.returncode == 0, done.stderr
    wait_work(world, terminal, lambda found: found.state is State.ENDED, "the session's end")
    check_gone(world, terminal)


@pytest.mark.parametrize("victim", ["agent", "holder"])
def test_whoever_is_killed_no_command_is_left_behind(world: World, victim: str) -> None:
    """An out-of-memory kill takes either; the agent's shells are in Unix sessions of their own."""
    order(world, "claude", "codex")
    terminal = run_command(world, "claude", call(shell("claude", COMMAND)))
    leg = wait_work(world, terminal, has_pids, "the leg's processes to be known").living_leg
    assert leg is not None
    os.kill(leg.child_pid if victim == "agent" else leg.holder_pid, signal.SIGKILL)
    wait_until(lambda: read_work(world).legs[0].is_over, "the loss to be noticed", limit_s=180)
    wait_until(lambda: not find_command(world), f"{world.find_processes()} to be gone", limit_s=180)
