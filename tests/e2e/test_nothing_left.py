"""A session that is ending while its daemon is stopped or killed: no process waits for the next daemon."""

import contextlib
import os
import signal

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.state import State
from tests.e2e.test_crash_matrix import begin, end, has_environment, settle
from tests.support.relay_world import RelayWorld, is_stopped, kill, relay_world, wait_until

ENDING = [
    "before StopLeg",
    "before leg.ended",
    "after leg.ended",
    "before session.ended",
    "after session.ended",
]


def stop_until(world: RelayWorld, point: str) -> tuple[str, int]:
    """A session whose end was asked for, and its daemon, which has frozen at `point`."""
    daemon = world.start_daemon(pause_at=point)
    session = str(world.open("demo")["session"])
    world.wait_for(session, lambda found: found.state is State.READY, "the agent is ready")
    with world.connect() as connection, contextlib.suppress(RelayError):
        connection.request("session.stop", limit_s=2, session=session)
    wait_until(lambda: is_stopped(daemon.pid), f"the daemon froze {point}")
    return session, daemon.pid


@pytest.mark.parametrize("point", ENDING)
def test_a_daemon_that_is_stopped_while_a_session_ends_sees_its_holder_out(point: str) -> None:
    """`agent-relay stop` and `agent-relay daemon stop` in one line of a script leave nothing running."""
    with relay_world() as world:
        session, daemon = stop_until(world, point)
        os.kill(daemon, signal.SIGTERM)
        os.kill(daemon, signal.SIGCONT)
        assert world.daemons[0].wait(timeout=120) == 0
        assert world.processes() == {}
        assert os.listdir(world.folders.legs) == []
        assert world.session(session).state is State.ENDED


def test_the_holder_of_a_session_that_is_ending_outlives_a_killed_daemon_for_seconds_only() -> None:
    """A daemon that was killed may not come back for days: what it kept is of no use to anybody."""
    with relay_world() as world:
        session, daemon = stop_until(world, "before leg.ended")
        kill(daemon)
        world.daemons[0].wait()
        wait_until(lambda: world.processes() == {}, "the holder has left by itself")
        world.start_daemon()
        world.wait_for(session, lambda found: found.state is State.ENDED, "the next daemon knows")
        assert os.listdir(world.folders.legs) == []


@pytest.mark.parametrize(
    "point",
    [
        "after handoff.begun",
        "before StopLeg",
        "after handoff.stopped",
        "before PublishPacket",
        "after SpawnLeg",
    ],
)
def test_a_daemon_stopped_in_a_failover_leaves_it_to_the_next_one(point: str) -> None:
    """`agent-relay daemon restart` after an upgrade may come in the very second of a limit."""
    with relay_world() as world:
        session, daemon = begin(world, point)
        os.kill(daemon, signal.SIGTERM)
        os.kill(daemon, signal.SIGCONT)
        assert world.daemons[-1].wait(timeout=120) == 0
        world.start_daemon()
        found = settle(world, session)
        assert (found.agent, len(found.done), found.packets) == ("understudy", 1, 1)
        assert has_environment(found)
        end(world, session)
