"""A repository that is renamed takes its sessions along."""

import os

import pytest

from agent_relay.domain.state import State
from agent_relay.store.session_index import find_root
from tests.support.at_work import WorkingWorld
from tests.support.seats import run

pytestmark = pytest.mark.size("every")


def rename(world: WorkingWorld) -> None:
    """The project stands elsewhere; what it was called is nothing's name any more."""
    before, world.project = world.project, f"{world.folder}/orchard"
    os.rename(before, world.project)


@pytest.mark.parametrize("is_daemon_left", [True, False])
def test_a_session_goes_on_where_its_repository_is_now(world: WorkingWorld, is_daemon_left: bool) -> None:  # noqa: FBT001 - a test's parameter
    """Its packets went to a folder that is gone, and the next agent would have started nowhere.

    Who asks for an agent in the new place gets the one at work: a second one would work in the same tree.
    """
    session = world.begin()
    rename(world)
    if is_daemon_left:
        assert world.open("demo")["session"] == session
    else:
        world.kill_daemons()
    told = run(world, "status")
    assert session in told.out
    passed = run(world, "relay")
    assert passed.status == 0, passed.err
    found = world.wait_handed_over(session)
    assert (found.root, found.cwd) == (world.project, world.project)
    assert find_root(world.folders.sessions, session) == world.project
    leg = found.living_leg
    assert leg is not None
    assert os.readlink(f"/proc/{leg.child_pid}/cwd") == world.project
    assert world.path(session, "resume", "0001-understudy.md").is_file()
    stopped = run(world, "stop")
    assert stopped.status == 0, stopped.err
    world.wait_state(session, State.ENDED)
    run(world, "daemon", "stop")


def test_a_session_that_ended_is_continued_in_the_new_place(world: WorkingWorld) -> None:
    """It is what somebody has in mind who renames a project between two days."""
    session = world.begin()
    world.stop(session)
    rename(world)
    world.open("understudy", session=session)
    found = world.wait_state(session, State.READY)
    assert found.cwd == world.project
