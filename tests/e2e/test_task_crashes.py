"""`kill -9` of the daemon at every step of giving an agent its task: it is submitted once all the same."""

import contextlib
import fcntl
import os

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from tests.e2e.test_crash_matrix import end, type_prompt
from tests.support.asked import list_asked
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, is_stopped, kill, relay_world, wait_until
from tests.support.runs import find_sessions

TASK = "paint the shed\nwith ghp_0123456789abcdefghijABCDEFGHIJ012345"
"""Of two lines, so that each of them would be a prompt if it were typed; with what no journal may hold."""
LINES = ("leg.started", "leg.ready", "DeliverTask", "leg.prompted", "leg.busy", "task.delivered")
POINTS = [f"{side} {name}" for name in LINES for side in ("before", "after")]


def open_and_kill(world: RelayWorld, point: str) -> str:
    """The session of somebody who gave a task to a daemon that was killed at `point` of it."""
    daemon = world.start_daemon(pause_at=point)
    wish = {"cwd": world.project, "env": world.environ, "rows": 30, "cols": 100, "task": TASK}
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request("open", agent="demo", limit_s=0.5, **wish)
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
    kill(daemon.pid)
    daemon.wait()
    (session,) = find_sessions(world)
    return session


@pytest.mark.parametrize("point", [*POINTS, "after SpawnLeg", "after paste", "after return"])
def test_a_task_is_submitted_once_whenever_the_daemon_is_killed(point: str) -> None:
    """Nobody is there to see that it was forgotten; typed twice it would be worked on twice."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"again": True, "do": []}])
        session = open_and_kill(world, point)
        world.start_daemon()
        world.wait_for(
            session, lambda now: any(leg.was_given for leg in now.legs), "the journal says that it was given"
        )
        world.wait_for(session, lambda now: now.state is State.READY, "the turn is over")
        type_prompt(world, session, "and now the door")
        wait_until(lambda: len(list_asked(world)) > 1, "another prompt was taken")
        assert list_asked(world) == [TASK, "and now the door"]
        names = [event.body.name for event in world.events(session)]
        assert names.count("task.delivered") == 1
        assert "ghp_" not in world.session(session).task
        end(world, session)


@pytest.mark.parametrize("point", ["after leg.starting", "before SpawnLeg"])
def test_who_asks_again_after_nothing_was_started_has_the_agent_at_work(point: str) -> None:
    """Their first command got no answer; told of an agent that was lost, they would look for its fault."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"again": True, "do": []}])
        before = open_and_kill(world, point)
        ask_again(world, before)


def test_who_asks_again_while_a_holder_is_still_ending_has_the_agent_at_work() -> None:
    """Its daemon was killed before it had told it what to hold: it has the leg's lock for a moment more."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=[{"again": True, "do": []}])
        before = open_and_kill(world, "before SpawnLeg")
        leg = world.session(before).legs[0]
        os.makedirs(f"{world.folders.legs}/{leg.id}", mode=0o700)
        with open(f"{world.folders.legs}/{leg.id}/lock", "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            world.spawn_daemon({})
            wait_until(lambda: "holder-silent" in read_log(world), "the lock was found held")
        ask_again(world, before)
        assert os.listdir(world.folders.legs) != [leg.id]


def ask_again(world: RelayWorld, before: str) -> None:
    """Whoever asks again is in a session of their own, once, and is given what they asked for."""
    if not world.answers():
        wait_until(lambda: is_serving(world), "a daemon serves")
    answer = world.open("demo", task=TASK)
    session = str(answer["session"])
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
