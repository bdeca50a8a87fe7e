"""A daemon killed while it begins a turn: the message is asked exactly once, whoever asks again.

Here are the points that differ in kind; tests/session/test_turns_crashes.py has them all.
"""

import os
import signal

import pytest

from tests.support.asked import are_over, kill_at, list_asked
from tests.support.relay_world import RelayWorld, is_stopped, kill, wait_until
from tests.support.runs import run_world, start
from tests.support.shells import ShellPerson, list_kept
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")

POINTS = ["before turn.begun", "after turn.begun", "after SpawnLeg"]


@pytest.mark.parametrize("point", sized(POINTS, ["after turn.begun"]))
def test_a_message_whose_daemon_died_before_it_answered_is_asked_once(world: RelayWorld, point: str) -> None:
    """An agent that is told twice to deploy deploys twice."""
    world.kill_daemons()
    frozen = world.start_daemon(pause_at=point)
    person = ShellPerson(world)
    person.type("hello")
    kill_at(frozen.pid, point)
    person.wait_for("demo heard you")
    person.wait_idle()
    wait_until(lambda: are_over(world), "nothing is at work")
    assert list_asked(world) == ["hello"]
    assert person.screen.count("demo heard you") == 1
    assert list_kept(world) == []
    person.type("again")
    wait_until(lambda: list_asked(world) == ["hello", "again"], "the next message is a turn of its own")


@pytest.mark.parametrize("point", POINTS)
def test_a_message_in_a_session_that_went_on_is_asked_once(person: ShellPerson, point: str) -> None:
    """The second message, whose session is known."""
    person.turn("hello")
    person.world.kill_daemons()
    frozen = person.world.start_daemon(pause_at=point)
    person.type("and soon")
    kill_at(frozen.pid, point)
    person.wait_for("I end")
    person.wait_idle()
    assert list_asked(person.world) == ["hello", "and soon"]
    assert list_kept(person.world) == []


def test_a_message_whose_shell_and_daemon_died_together_is_asked_once_by_the_next_shell(
    world: RelayWorld,
) -> None:
    """The machine's memory ran out: both were killed, and the message stands in the file of a gone shell."""
    world.kill_daemons()
    frozen = world.start_daemon(pause_at="after turn.begun")
    person = ShellPerson(world)
    person.type("hello")
    wait_until(lambda: is_stopped(frozen.pid), "the daemon froze")
    os.kill(person.terminal.pid, signal.SIGKILL)
    kill(frozen.pid)
    second = ShellPerson(world)
    second.wait_for("1 unsent message from an earlier shell")
    second.type("", shows="demo heard you")
    second.wait_idle()
    assert list_asked(world) == ["hello"]
    assert list_kept(world) == []


@pytest.mark.parametrize("point", sized(POINTS, ["after SpawnLeg"]))
def test_a_run_whose_daemon_died_before_it_answered_is_one_turn(point: str) -> None:
    """A script has nobody who could look whether the agent was asked."""
    with run_world() as world:
        frozen = world.start_daemon(pause_at=point)
        process = start(world, "demo", "hello")
        kill_at(frozen.pid, point)
        out, _ = process.communicate(timeout=60)
        assert (process.returncode, out.decode()) == (0, "demo heard you\n")
        assert list_asked(world) == ["hello"]
        wait_until(lambda: are_over(world), "nothing is at work")
