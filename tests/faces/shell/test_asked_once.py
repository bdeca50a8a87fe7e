"""A daemon killed while it begins a turn: the message is asked exactly once, whoever asks again."""

import os
import signal

import pytest

from tests.support.asked import are_over, kill_at, list_asked
from tests.support.relay_world import is_stopped, kill, wait_until
from tests.support.runs import run_world, start
from tests.support.shells import ShellPerson, list_kept, shell_world

pytestmark = pytest.mark.size("test")

POINTS = [
    "before turn.begun",
    "after turn.begun",
    "before leg.starting",
    "after leg.starting",
    "before SpawnLeg",
    "after SpawnLeg",
    "after leg.started",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_message_whose_daemon_died_before_it_answered_is_asked_once(point: str) -> None:
    """An agent that is told twice to deploy deploys twice."""
    with shell_world() as world:
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
def test_a_message_in_a_session_that_went_on_is_asked_once(point: str) -> None:
    """The second message, whose session is known."""
    with shell_world() as world:
        person = ShellPerson(world)
        person.type("hello")
        person.wait_for("demo heard you")
        person.wait_idle()
        world.kill_daemons()
        frozen = world.start_daemon(pause_at=point)
        person.type("and soon")
        kill_at(frozen.pid, point)
        person.wait_for("I end")
        person.wait_idle()
        assert list_asked(world) == ["hello", "and soon"]
        assert list_kept(world) == []


def test_a_message_whose_shell_and_daemon_died_together_is_asked_once_by_the_next_shell() -> None:
    """The machine's memory ran out: both were killed, and the message stands in the file of a gone shell."""
    with shell_world() as world:
        world.kill_daemons()
        frozen = world.start_daemon(pause_at="after turn.begun")
        person = ShellPerson(world)
        person.type("hello")
        wait_until(lambda: is_stopped(frozen.pid), "the daemon froze")
        os.kill(person.terminal.pid, signal.SIGKILL)
        kill(frozen.pid)
        second = ShellPerson(world)
        second.wait_for("1 unsent message from an earlier shell")
        second.type("")
        second.wait_for("demo heard you")
        second.wait_idle()
        assert list_asked(world) == ["hello"]
        assert list_kept(world) == []


@pytest.mark.parametrize("point", POINTS)
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
