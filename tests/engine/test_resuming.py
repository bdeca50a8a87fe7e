"""A session that is to go on at the reset, whose daemon was killed while it rested."""

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent_relay.domain.events.session import ConsentUsed
from agent_relay.domain.state import State
from tests.support.at_work import begin, say
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, kill, relay_world, wait_until

pytestmark = pytest.mark.size("test")

OUT = {"limit": "You've hit your session limit", "resets_in_s": 12}
SCENES = [{"when": "out", "do": [OUT]}, {"again": True, "do": [{"say": "I go on"}]}]


@contextlib.contextmanager
def resting_world() -> Iterator[tuple[RelayWorld, str]]:
    """A world with a session that is about to rest, and goes on by itself at its reset."""
    with relay_world(order=("demo",)) as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES)
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write("resume_at_reset = true\nreset_grace_s = 0\n")
        world.start_daemon()
        session = begin(world)
        say(world, session, "out")
        yield world, session


def test_a_reset_that_passed_while_no_daemon_lived_is_acted_on_as_soon_as_one_does() -> None:
    """Who wished it to go on by itself is not there to ask for it."""
    with resting_world() as (world, session):
        found = world.wait_for(session, lambda now: now.state is State.RESTING, "everybody rests")
        world.kill_daemons()
        until = datetime.fromisoformat(found.rested_until)
        wait_until(lambda: datetime.now(UTC) > until, "the reset has passed")
        assert world.session(session).state is State.RESTING
        world.start_daemon()
        found = world.wait_for(session, lambda now: len(now.done) == 1, "the session goes on")
        assert (found.agent, found.done[0].why) == ("demo", "the first reset has passed")


def test_a_rest_that_was_agreed_to_survives_a_reboot() -> None:
    """Daemon, holder, agent and runtime folder are gone: the next daemon waits for the reset and goes on."""
    with resting_world() as (world, session):
        world.wait_for(session, lambda now: now.state is State.RESTING, "everybody rests")
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
