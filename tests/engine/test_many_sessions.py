"""A daemon starts with the sessions that live, however many have ended."""

from pathlib import Path

import pytest

from agent_relay.domain.events.session import SessionEnded
from agent_relay.domain.state import State
from agent_relay.store.session_index import list_ended, list_unended
from tests.support.at_work import WorkingWorld
from tests.support.journals import write_session
from tests.support.relay_world import wait_until

pytestmark = pytest.mark.size("every")

ENDED = [f"01JD{number:022}" for number in range(5)]


def spoil(world: WorkingWorld, session: str) -> None:
    """Whoever reads the session's journal from now on says so in the daemon's log."""
    journal = Path(world.project) / ".agent-relay" / "sessions" / session / "journal.jsonl"
    journal.write_bytes(b"nobody reads this\n")


def read_log(world: WorkingWorld) -> str:
    """What daemons have logged so far."""
    return Path(world.folders.daemon_log).read_text(encoding="utf-8")


def test_of_sessions_that_ended_one_daemon_reads_the_journals_and_finds_the_living_among_them(
    world: WorkingWorld,
) -> None:
    """Thousands of them cost every start seconds of processor time, and more on a busy machine.

    One that has not ended would work on under nobody's eyes.
    """
    for session in ENDED:
        write_session(Path(world.project), session, index=Path(world.folders.sessions), ended=True)
    alive = world.begin()
    world.restart()
    assert list_ended(world.folders.sessions) == set(ENDED)
    assert list_unended(world.folders.sessions) == [alive]
    for session in ENDED:
        spoil(world, session)
    world.restart()
    assert "not-recovered" not in read_log(world)
    assert world.where(alive, "state") == "ready"


def test_a_session_that_goes_on_is_not_known_as_ended_any_more(world: WorkingWorld) -> None:
    """A daemon killed while it works again would leave its agent alone for good."""
    session = world.begin()
    world.stop(session)
    world.restart()
    assert list_ended(world.folders.sessions) == {session}
    world.open("demo", session=session)
    assert list_ended(world.folders.sessions) == set()
    world.wait_state(session, State.READY)
    world.restart()
    assert world.where(session, "state") == "ready"


@pytest.mark.parametrize("moment", [f"after {SessionEnded.name}", f"before {SessionEnded.name}"])
def test_a_daemon_killed_while_a_session_ends_leaves_nothing_running(
    world: WorkingWorld, moment: str
) -> None:
    """A session counts as ended only when all of its end was seen to: its holder is still there by then."""
    session = world.begin()
    frozen = world.freeze_at(moment)
    world.ask("session.stop", session=session)
    world.wait_frozen(frozen)
    world.restart()
    world.wait_state(session, State.ENDED)
    wait_until(lambda: not world.find_workers(), "nothing is left")
