"""A session that is ending while its daemon is stopped or killed: no process waits for the next daemon."""

import os
import signal

import pytest

from agent_relay.domain.state import State
from tests.support.at_work import begin, working_world
from tests.support.crashes import freeze_asked
from tests.support.relay_world import RelayWorld, wait_until


def stop_until(world: RelayWorld, point: str) -> tuple[str, int]:
    """A session whose end was asked for, and its daemon, which has frozen at `point`."""
    session = begin(world)
    return session, freeze_asked(world, point, "session.stop", session=session)


@pytest.mark.parametrize("point", ["before StopLeg", "after leg.ended", "before session.ended"])
def test_a_daemon_that_is_stopped_while_a_session_ends_sees_its_holder_out(point: str) -> None:
    """`agent-relay stop` and `agent-relay daemon stop` in one line of a script leave nothing running."""
    with working_world() as world:
        session, daemon = stop_until(world, point)
        os.kill(daemon, signal.SIGTERM)
        os.kill(daemon, signal.SIGCONT)
        assert world.daemons[-1].wait(timeout=120) == 0
        assert world.processes() == {}
        assert os.listdir(world.folders.legs) == []
        assert world.session(session).state is State.ENDED


def test_the_holder_of_a_session_that_is_ending_outlives_a_killed_daemon_for_seconds_only() -> None:
    """A daemon that was killed may not come back for days: what it kept is of no use to anybody."""
    with working_world() as world:
        session, _ = stop_until(world, "before leg.ended")
        world.kill_daemons()
        wait_until(lambda: world.processes() == {}, "the holder has left by itself")
        world.start_daemon()
        world.wait_for(session, lambda found: found.state is State.ENDED, "the next daemon knows")
        assert os.listdir(world.folders.legs) == []
