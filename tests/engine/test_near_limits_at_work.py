"""A limit that is near, in a daemon: the next agent is chosen and briefed, and windows outlive the daemon."""

import pytest

from agent_relay.store.usage_windows import read_windows
from agent_relay.system.clock import SystemClock
from tests.support.at_work import LIMIT, WARNING, WorkingWorld
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")


def test_a_packet_for_the_next_agent_is_saved_while_the_agent_works_on(world: WorkingWorld) -> None:
    """It can be read and edited before the limit, at which a newer one is made.

    The warning is kept until the next leg: people want to know before it happens.
    """
    session = world.begin()
    world.say(session, "near")
    found = world.wait_for(session, lambda found: bool(found.saved), "a packet is drafted")
    assert found.near is not None
    assert found.near.text == "You've used 92% of your session limit"
    assert found.prepared is not None
    assert (found.prepared.agent, found.handoff, found.agent) == ("understudy", None, "demo")
    assert world.path(session, "resume", f"{found.saved[0]:04}-understudy.md").exists()
    after = world.run_out(session)
    assert after.done[0].sequence > found.saved[0]
    assert after.near is None


def test_without_a_screen_the_packet_is_saved_during_the_turn(world: WorkingWorld) -> None:
    """The next agent goes on with the turn at the limit, and reads what was known before it."""
    world.play(demo=[{"when": "near", "do": [WARNING, {"wait_s": 3.0}, LIMIT]}])
    wish = {"agent": "demo", "task": "near", "cwd": world.project, "env": world.environ}
    session = str(world.ask("run.begin", **wish)["session"])
    world.wait_for(session, lambda found: bool(found.done), "the next agent took over")
    names = world.names(session)
    assert names.index("packet.saved") < names.index("handoff.begun")


def test_what_an_agent_said_of_its_windows_outlives_the_daemon(world: WorkingWorld) -> None:
    """The next one may not hear of it again before the limit."""
    session = world.begin()
    world.say(session, "count")
    path, clock = world.folders.usage_windows, SystemClock()
    wait_until(lambda: bool(read_windows(path, clock.now())), "the windows are written")
    world.restart()
    (row,) = read_windows(path, clock.now())
    assert (row["agent"], row["used_percent"], row["source"]) == ("demo", 42, "transcript")
