"""A limit that is near, in a daemon: the next agent is chosen and briefed, and windows outlive the daemon."""

import os
from collections.abc import Iterator

import pytest

from agent_relay.store.usage_windows import read_windows
from agent_relay.system.clock import SystemClock
from tests.support.at_work import LIMIT, WARNING, begin, restart, say, working_world
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import RelayWorld, wait_until

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """Two scripted agents and a daemon."""
    with working_world() as made:
        yield made


def test_a_packet_for_the_next_agent_is_saved_while_the_agent_works_on(world: RelayWorld) -> None:
    """It can be read and edited before the limit, at which a newer one is made."""
    session = begin(world)
    say(world, session, "near")
    found = world.wait_for(session, lambda found: bool(found.saved), "a packet is drafted")
    assert found.prepared is not None
    assert (found.prepared.agent, found.handoff, found.agent) == ("understudy", None, "demo")
    folder = f"{world.project}/.agent-relay/sessions/{session}"
    assert os.path.exists(f"{folder}/resume/{found.saved[0]:04}-understudy.md")
    say(world, session, "out")
    done = world.wait_for(session, lambda found: len(found.done) == 1, "the next agent took over").done[0]
    assert done.sequence > found.saved[0]


def test_without_a_screen_the_packet_is_saved_during_the_turn(world: RelayWorld) -> None:
    """The next agent goes on with the turn at the limit, and reads what was known before it."""
    slowly = {"when": "near", "do": [WARNING, {"wait_s": 3.0}, LIMIT]}
    write_screenplays(f"{world.folder}/plays", demo=[slowly])
    wish = {"agent": "demo", "task": "near", "cwd": world.project, "env": world.environ}
    session = str(world.ask("run.begin", **wish)["session"])
    world.wait_for(session, lambda found: bool(found.done), "the next agent took over")
    names = [event.body.name for event in world.events(session)]
    assert names.index("packet.saved") < names.index("handoff.begun")


def test_what_an_agent_said_of_its_windows_outlives_the_daemon(world: RelayWorld) -> None:
    """The next one may not hear of it again before the limit."""
    session = begin(world)
    say(world, session, "count")
    path, clock = world.folders.usage_windows, SystemClock()
    wait_until(lambda: bool(read_windows(path, clock.now())), "the windows are written")
    restart(world)
    (row,) = read_windows(path, clock.now())
    assert (row["agent"], row["used_percent"], row["source"]) == ("demo", 42, "transcript")
