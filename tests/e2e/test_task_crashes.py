"""`kill -9` of the daemon while it gives an agent its task: it is submitted once all the same."""

import fcntl
import os
from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from tests.support.asked import list_asked
from tests.support.at_work import WorkingWorld, working_world
from tests.support.crashes import end, freeze_asked
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.runs import find_sessions
from tests.support.sizes import sized

TASK = "paint the shed\nwith ghp_0123456789abcdefghijABCDEFGHIJ012345"
"""Of two lines, so that each of them would be a prompt if it were typed; with what no journal may hold."""
POINTS = (
    "after SpawnLeg",
    "before leg.ready",
    "before DeliverTask",
    "after paste",
    "after return",
    "before leg.busy",
    "before task.delivered",
)


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A machine whose first agent does whatever it is asked at once."""
    with working_world(starts=False, demo=[{"again": True, "do": []}]) as made:
        yield made


def open_and_kill(world: RelayWorld, point: str) -> str:
    """The session of somebody who gave a task to a daemon that was killed at `point` of it."""
    wish = {"cwd": world.project, "env": world.environ, "rows": 30, "cols": 100, "task": TASK}
    freeze_asked(world, point, "open", agent="demo", **wish)
    world.kill_daemons()
    (session,) = find_sessions(world)
    return session


@pytest.mark.parametrize("point", sized(POINTS, ["after return"]))
def test_a_task_is_submitted_once_whenever_the_daemon_is_killed(world: WorkingWorld, point: str) -> None:
    """Nobody is there to see that it was forgotten; typed twice it would be worked on twice."""
    session = open_and_kill(world, point)
    world.start_daemon()
    world.wait_for(session, lambda now: any(leg.was_given for leg in now.legs), "the task was given")
    world.wait_for(session, lambda now: now.state is State.READY, "the turn is over")
    world.say(session, "and now the door")
    wait_until(lambda: len(list_asked(world)) > 1, "another prompt was taken")
    assert list_asked(world) == [TASK, "and now the door"]
    assert world.names(session).count("task.delivered") == 1
    assert "ghp_" not in world.session(session).task
    end(world, session)


@pytest.mark.parametrize("point", ["after leg.starting", "before SpawnLeg"])
def test_who_asks_again_after_nothing_was_started_has_the_agent_at_work(
    world: WorkingWorld, point: str
) -> None:
    """Their first command got no answer; told of an agent that was lost, they would look for its fault."""
    before = open_and_kill(world, point)
    world.start_daemon()
    ask_again(world, before)


def test_who_asks_again_while_a_holder_is_still_ending_has_the_agent_at_work(world: WorkingWorld) -> None:
    """Its daemon was killed before it had told it what to hold: it has the leg's lock for a moment more."""
    before = open_and_kill(world, "before SpawnLeg")
    leg = world.session(before).legs[0]
    os.makedirs(f"{world.folders.legs}/{leg.id}", mode=0o700)
    with open(f"{world.folders.legs}/{leg.id}/lock", "wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        world.spawn_daemon({})
        wait_until(lambda: "holder-silent" in read_log(world), "the lock was found held")
    wait_until(lambda: is_serving(world), "a daemon serves")
    ask_again(world, before)
    assert os.listdir(world.folders.legs) != [leg.id]


def ask_again(world: RelayWorld, before: str) -> None:
    """Whoever asks again is in a session of their own, once, and is given what they asked for."""
    session = str(world.open("demo", task=TASK)["session"])
    assert session != before
    assert world.session(before).why == "the daemon was killed before an agent was asked"
    world.wait_for(session, lambda now: now.legs[0].was_given, "the task was given")
    assert list_asked(world) == [TASK]
    end(world, session)


def is_serving(world: RelayWorld) -> bool:
    """Whether a daemon serves; one is started where none lives."""
    if all(daemon.poll() is not None for daemon in world.daemons):
        world.start_daemon()
    return world.answers()


def read_log(world: RelayWorld) -> str:
    """The daemon's log."""
    try:
        with open(world.folders.daemon_log, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""
