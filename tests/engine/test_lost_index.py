"""A state folder that was removed costs no session its name."""

import os
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from agent_relay.store.session_index import list_named
from tests.support.at_work import begin, finish_turn, restart, say
from tests.support.deleting import delete_folder
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.seats import run

pytestmark = pytest.mark.size("test")


def lose_state(world: RelayWorld) -> None:
    """As somebody does who cleans up below their home: whatever the daemon writes there now."""
    delete_folder(world.folders.state)


@pytest.mark.parametrize("by", ["id", "place"])
def test_a_session_at_work_can_be_named_when_the_state_folder_is_gone(world: RelayWorld, by: str) -> None:
    """Its agent is there for everybody to see: 'no session is named so' would be untrue."""
    session = begin(world)
    lose_state(world)
    told = run(world, "status")
    assert "ready  demo" in told.out
    assert session in told.out
    lose_state(world)
    stopped = run(world, "stop", *([session[-6:]] if by == "id" else []))
    assert stopped.status == 0, stopped.err
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")


def test_the_index_is_written_again_as_soon_as_a_session_changes(world: RelayWorld) -> None:
    """Nobody needs to ask for it."""
    session = begin(world)
    lose_state(world)
    say(world, session, "hello")
    finish_turn(world, session)
    wait_until(lambda: list_named(world.folders.sessions) == [session], "the index names the session")


def test_a_daemon_that_begins_without_its_state_takes_the_living_up(world: RelayWorld) -> None:
    """Both went at once, as with a cleaned home: its agent would work on under nobody's eyes."""
    session = begin(world)
    world.kill_daemons()
    lose_state(world)
    world.start_daemon()
    assert list_named(world.folders.sessions) == [session]
    assert world.ask("where", session=session)["state"] == "ready"


def test_the_index_is_renewed_for_a_command_when_no_daemon_is_left(world: RelayWorld) -> None:
    """The command starts one where legs are left, and only there."""
    session = begin(world)
    world.kill_daemons()
    lose_state(world)
    stopped = run(world, "stop")
    assert stopped.status == 0, stopped.err
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    run(world, "daemon", "stop")


def test_what_only_says_that_it_is_a_legs_owner_harms_no_start(world: RelayWorld) -> None:
    """The folder is private, and still a crash may have left half a note."""
    session = begin(world)
    for number, note in enumerate(("", "[]", "{", '{"session": 7}', '{"session": "../x", "root": "/r"}')):
        folder = Path(world.folders.legs, f"01JD{number:022}")
        folder.mkdir()
        (folder / "session.json").write_text(note)
    restart(world)
    assert list_named(world.folders.sessions) == [session]
    assert os.listdir(world.folders.sessions)
