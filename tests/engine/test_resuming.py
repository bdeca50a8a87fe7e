"""A session that is to go on at the reset, whose daemon was killed while it rested."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent_relay.domain.events.session import ConsentUsed
from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld, working_world
from tests.support.relay_world import kill, wait_until

pytestmark = pytest.mark.size("every")

OUT = {"limit": "You've hit your session limit", "resets_in_s": 12}
SCENES = [{"when": "out", "do": [OUT]}, {"again": True, "do": [{"say": "I go on"}]}]


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """One agent, and a user who wants it to go on by itself at its reset."""
    with working_world(order=("demo",), starts=False, demo=SCENES) as made:
        made.configure("resume_at_reset = true\nreset_grace_s = 0\n")
        yield made


def rest(world: WorkingWorld) -> str:
    """A session that is about to rest."""
    session = world.begin()
    world.say(session, "out")
    return session


@pytest.mark.size("test")
def test_a_reset_that_passed_while_no_daemon_lived_is_acted_on_as_soon_as_one_does(
    world: WorkingWorld,
) -> None:
    """Who wished it to go on by itself is not there to ask for it."""
    session = rest(world)
    found = world.wait_state(session, State.RESTING)
    world.kill_daemons()
    until = datetime.fromisoformat(found.rested_until)
    wait_until(lambda: datetime.now(UTC) > until, "the reset has passed")
    assert world.session(session).state is State.RESTING
    world.start_daemon()
    found = world.wait_for(session, lambda now: len(now.done) == 1, "the session goes on")
    assert (found.agent, found.done[0].why) == ("demo", "the first reset has passed")


def test_a_rest_that_was_agreed_to_survives_a_reboot(world: WorkingWorld) -> None:
    """Daemon, holder, agent and runtime folder are gone: the next daemon waits for the reset and goes on."""
    session = rest(world)
    world.wait_state(session, State.RESTING)
    world.kill_daemons()
    leg = world.session(session).living_leg
    assert leg is not None
    kill(leg.holder_pid)
    kill(leg.child_pid)
    shutil.rmtree(world.folders.legs)
    world.start_daemon()
    found = world.wait_for(session, lambda now: len(now.done) == 1, "the session goes on")
    assert [one.how for one in found.legs] == ["lost", ""]
    assert found.done[0].why == "the first reset has passed"
    used = [event.body for event in world.events(session) if isinstance(event.body, ConsentUsed)]
    assert [(one.agent, one.consent) for one in used] == [("demo", "always")]
