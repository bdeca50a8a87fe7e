"""A repository that is renamed takes its sessions along."""

import os
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from agent_relay.store.session_index import find_root
from tests.support.at_work import begin, has_taken_over, say
from tests.support.relay_world import RelayWorld
from tests.support.seats import run

pytestmark = pytest.mark.size("test")


def rename(world: RelayWorld) -> str:
    """The project stands elsewhere; what it was called is nothing's name any more."""
    before, world.project = world.project, f"{world.folder}/orchard"
    os.rename(before, world.project)
    return before


@pytest.mark.parametrize("is_daemon_left", [True, False])
def test_a_session_goes_on_where_its_repository_is_now(world: RelayWorld, is_daemon_left: bool) -> None:  # noqa: FBT001 - a test's parameter
    """Its packets went to a folder that is gone, and the next agent would have started nowhere."""
    session = begin(world)
    rename(world)
    if not is_daemon_left:
        world.kill_daemons()
    told = run(world, "status")
    assert session in told.out
    passed = run(world, "relay")
    assert passed.status == 0, passed.err
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert (found.root, found.cwd) == (world.project, world.project)
    assert find_root(world.folders.sessions, session) == world.project
    leg = found.living_leg
    assert leg is not None
    assert os.readlink(f"/proc/{leg.child_pid}/cwd") == world.project
    assert Path(world.project, ".agent-relay", "sessions", session, "resume", "0001-understudy.md").is_file()
    stopped = run(world, "stop")
    assert stopped.status == 0, stopped.err
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    run(world, "daemon", "stop")


def test_who_asks_for_an_agent_in_the_new_place_gets_the_one_at_work(world: RelayWorld) -> None:
    """A second one would work in the same tree beside it."""
    session = begin(world)
    rename(world)
    assert world.open("demo")["session"] == session
    say(world, session, "out")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert found.root == world.project


def test_a_session_that_ended_is_continued_in_the_new_place(world: RelayWorld) -> None:
    """It is what somebody has in mind who renames a project between two days."""
    session = begin(world)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    rename(world)
    world.open("understudy", session=session)
    found = world.wait_for(session, lambda found: found.state is State.READY, "an agent is ready")
    assert found.cwd == world.project
