"""`kill -9` of daemon, holder and agent in the middle of a failover, or an end: one successor, nothing left.

The state machine's own tests kill it at every line (tests/session/test_machine_crashes.py). Here each kind of
moment is met by real processes: what is on the disk, and who takes over what still runs.
"""

import os
import signal

import pytest

from agent_relay.domain.state import State
from agent_relay.store.session_index import read_resting
from tests.support.at_work import begin, restart, working_world
from tests.support.crashes import (
    assert_handed_over,
    end,
    freeze_asked,
    freeze_in_failover,
    is_settled,
    settle,
)
from tests.support.relay_world import RelayWorld, kill, relay_world, wait_until
from tests.support.sizes import sized

POINTS = (
    "before signal.seen",  # nothing is written
    "before handoff.begun",  # the limit is known, and nothing else
    "after NoteRest",  # what all sessions share is written, and this one's journal is behind
    "after handoff.stopped",  # the one agent has ended, no other was started
    "before PublishPacket",  # an effect was asked for
    "after PublishPacket",  # a packet that is in no journal
    "after SpawnLeg",  # a process that is in no journal
    "after DeliverPacket",  # a prompt that is in no journal
)
OFTEN = ("before handoff.begun", "after handoff.stopped", "before PublishPacket", "after SpawnLeg")


@pytest.mark.parametrize("point", sized(POINTS, OFTEN))
def test_a_daemon_killed_at_any_step_is_succeeded_by_one_that_finishes_the_failover(point: str) -> None:
    """The agent's limit may come in the very second the daemon is upgraded, or the machine kills it."""
    with relay_world() as world:
        session, _ = freeze_in_failover(world, point)
        restart(world)
        assert_handed_over(settle(world, session))
        wait_until(lambda: read_resting(world.folders.ledger), "the ledger knows who rests")
        assert [rest["agent"] for rest in read_resting(world.folders.ledger)] == ["demo"]
        end(world, session)


@pytest.mark.parametrize("point", ["before PublishPacket", "after SpawnLeg"])
def test_a_daemon_stopped_in_a_failover_leaves_it_to_the_next_one(point: str) -> None:
    """`agent-relay daemon restart` after an upgrade may come in the very second of a limit."""
    with relay_world() as world:
        session, daemon = freeze_in_failover(world, point)
        os.kill(daemon, signal.SIGTERM)
        os.kill(daemon, signal.SIGCONT)
        assert world.daemons[-1].wait(timeout=120) == 0
        world.start_daemon()
        assert_handed_over(settle(world, session))
        end(world, session)


DEATHS = [
    (victim, f"after {what}") for what in ("handoff.begun", "leg.started") for victim in ("holder", "agent")
]


@pytest.mark.parametrize(("victim", "point"), sized(DEATHS, [DEATHS[0], DEATHS[-1]], name="-".join))
def test_a_holder_or_agent_killed_at_any_step_leaves_one_agent_or_a_rest_that_says_why(
    victim: str, point: str
) -> None:
    """Whatever dies, the session is never stuck in between and never has two agents."""
    with relay_world() as world:
        session, daemon = freeze_in_failover(world, point)
        leg = world.session(session).living_leg
        assert leg is not None
        kill(leg.holder_pid if victim == "holder" else leg.child_pid)
        os.kill(daemon, signal.SIGCONT)
        world.wait_for(
            session,
            lambda now: all(one.is_over for one in now.legs if one.id == leg.id),
            "the death is known",
        )
        found = settle(world, session)
        if found.state in (State.RESTING, State.ENDED):
            assert found.why
            assert world.find_agents() == []
        answer = world.open("understudy", session=session, yes=True)
        assert answer["session"] == session
        world.wait_for(
            session,
            lambda now: now.agent == "understudy" and now.living_leg is not None and is_settled(now),
            "the session goes on without repair",
        )
        end(world, session)


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
