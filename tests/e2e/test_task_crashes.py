"""`kill -9` of the daemon at every step of giving an agent its task: it is submitted once all the same."""

import contextlib

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import State
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


@pytest.mark.slow
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
