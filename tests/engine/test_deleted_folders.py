"""A folder deleted with a session at work in it: nothing can be written of it, and nothing goes on."""

import os
from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from tests.support.at_work import WorkingWorld, working_world
from tests.support.deleting import delete_folder
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import is_daemons, wait_until

pytestmark = pytest.mark.size("every")


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A daemon, and an agent that works for as long as it is let."""
    with working_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=[{"do": [{"wait_s": 600}]}])
        yield made


def test_a_session_whose_folder_was_deleted_can_be_stopped(world: WorkingWorld) -> None:
    """Its agent would work on in nothing, and nobody could end it but by hand."""
    project = f"{world.folder}/deleted"
    os.makedirs(project)
    begun = world.ask("run.begin", agent="demo", task="hello", cwd=project, env=world.environ)
    session = str(begun["session"])
    wait_until(lambda: _find_state(world, session) == State.BUSY.value, "the agent works")
    delete_folder(project)
    assert world.ask("session.stop", session=session)["session"] == session
    assert world.ask("session.list")["sessions"] == []
    wait_until(lambda: all(is_daemons(line) for line in world.processes().values()), "nobody works")
    assert os.listdir(world.folders.legs) == []


def _find_state(world: WorkingWorld, session: str) -> object:
    return world.where(session, "state")
