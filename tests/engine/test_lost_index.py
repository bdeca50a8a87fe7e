"""A state folder that was removed costs no session its name."""

from pathlib import Path

import pytest

from agent_relay.domain.state import State
from agent_relay.store.session_index import list_named
from tests.support.at_work import WorkingWorld
from tests.support.deleting import delete_folder
from tests.support.relay_world import wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("every")


def lose_state(world: WorkingWorld) -> None:
    """As somebody does who cleans up below their home: whatever the daemon writes there now."""
    delete_folder(world.folders.state)


@pytest.mark.size("test")
def test_a_session_at_work_can_be_named_when_the_state_folder_is_gone(world: WorkingWorld) -> None:
    """Its agent is there for everybody to see: 'no session is named so' would be untrue.

    The index is written again as soon as a session changes: nobody needs to ask for it.
    """
    session = world.begin()
    lose_state(world)
    told = run(world, "status")
    assert "ready  demo" in told.out
    assert session in told.out
    lose_state(world)
    world.say(session, "hello")
    world.finish_turn(session)
    wait_until(lambda: list_named(world.folders.sessions) == [session], "the index names the session")
    lose_state(world)
    stopped = run(world, "stop", session[-6:])
    assert stopped.status == 0, stopped.err
    world.wait_state(session, State.ENDED)


def test_a_daemon_that_begins_without_its_state_takes_the_living_up(world: WorkingWorld) -> None:
    """Both went at once, as with a cleaned home: its agent would work on under nobody's eyes.

    What only says that it is a leg's owner harms no start: a crash may have left half a note. A command
    renews the index, too, where no daemon is left: it starts one where legs are left, and only there.
    """
    session = world.begin()
    for number, note in enumerate(("", "[]", "{", '{"session": 7}', '{"session": "../x", "root": "/r"}')):
        folder = Path(world.folders.legs, f"01JD{number:022}")
        folder.mkdir()
        (folder / "session.json").write_text(note)
    world.kill_daemons()
    lose_state(world)
    world.start_daemon()
    assert list_named(world.folders.sessions) == [session]
    assert world.where(session, "state") == "ready"
    world.kill_daemons()
    lose_state(world)
    stopped = run(world, "stop")
    assert stopped.status == 0, stopped.err
    world.wait_state(session, State.ENDED)
    run(world, "daemon", "stop")
