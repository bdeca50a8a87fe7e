"""The user's environment outlives the daemon while no agent lives, in the memory of the last leg's holder."""

import os

import pytest

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from tests.support.at_work import begin, restart, say
from tests.support.crashes import BROUGHT, begin_under, freeze_asked, has_environment
from tests.support.relay_world import RelayWorld, is_stopped, kill, relay_world, wait_until
from tests.support.seats import seat, seated_world
from tests.support.sizes import sized


def begin_rest(world: RelayWorld) -> str:
    """A session whose only agent has hit its limit."""
    world.start_daemon()
    session = begin(world, env={**world.environ, **BROUGHT})
    say(world, session, "please greet nobody")
    world.wait_for(session, lambda found: found.state is State.RESTING, "the session rests")
    return session


def is_under_understudy(session: Session) -> bool:
    return session.agent == "understudy" and session.state in (State.READY, State.BUSY)


def test_an_agent_started_after_a_rest_by_another_daemon_has_the_users_keys() -> None:
    """A rest may last for days, and a daemon is replaced in it: by an upgrade, by the machine's memory."""
    with relay_world(order=("demo",)) as world:
        session = begin_rest(world)
        restart(world)
        world.ask("use", session=session, agent="understudy")
        found = world.wait_for(session, is_under_understudy, "the second agent is ready")
        assert has_environment(found)
        wait_until(lambda: len(os.listdir(world.folders.legs)) == 1, "the first leg's holder has left")
        world.ask("session.stop", session=session)
        wait_until(lambda: os.listdir(world.folders.legs) == [], "nothing is kept for a session that ended")


def test_what_a_killed_daemon_kept_for_an_ended_session_leaves_with_the_next_one() -> None:
    """No process stays behind because nobody was there to let it go."""
    with relay_world(order=("demo",)) as world:
        session = begin_rest(world)
        freeze_asked(world, "after session.ended", "session.stop", session=session)
        assert world.session(session).state is State.ENDED
        assert len(os.listdir(world.folders.legs)) == 1
        restart(world)
        wait_until(lambda: os.listdir(world.folders.legs) == [], "the holder has left")


@pytest.mark.parametrize("point", sized(["after handoff.begun", "before SpawnLeg"], ["before SpawnLeg"]))
def test_an_attached_terminal_brings_the_users_keys_when_daemon_and_holder_died_together(point: str) -> None:
    """Nobody else has them then, and a successor without its key is signed out."""
    with seated_world() as world:
        session, frozen = begin_under(world, point)
        leg = world.session(session).living_leg
        assert leg is not None
        with seat(world, "attach", variables=BROUGHT, shows="ready | demo") as person:
            person.type(b"please limit\r")
            wait_until(lambda: is_stopped(frozen), f"the daemon froze {point}")
            kill(leg.holder_pid)
            kill(frozen)
            found = world.wait_for(session, is_under_understudy, "the second agent is ready")
            assert has_environment(found)
