"""A daemon starts with the sessions that live, however many have ended."""

from pathlib import Path

import pytest

from agent_relay.domain.events.session import SessionEnded
from agent_relay.domain.state import State
from agent_relay.store.session_index import list_ended, list_unended
from tests.support.at_work import begin, restart
from tests.support.journals import write_session
from tests.support.relay_world import RelayWorld, is_stopped, relay_world, wait_until

pytestmark = pytest.mark.size("test")

ENDED = [f"01JD{number:022}" for number in range(5)]


def spoil(world: RelayWorld, session: str) -> None:
    """Whoever reads the session's journal from now on says so in the daemon's log."""
    journal = Path(world.project) / ".agent-relay" / "sessions" / session / "journal.jsonl"
    journal.write_bytes(b"nobody reads this\n")


def read_log(world: RelayWorld) -> str:
    """What daemons have logged so far."""
    return Path(world.folders.daemon_log).read_text(encoding="utf-8")


def test_journals_of_sessions_that_ended_are_read_by_one_daemon_only(world: RelayWorld) -> None:
    """Thousands of them cost every start seconds of processor time, and more on a busy machine."""
    for session in ENDED:
        write_session(Path(world.project), session, index=Path(world.folders.sessions), ended=True)
    restart(world)
    assert list_ended(world.folders.sessions) == set(ENDED)
    for session in ENDED:
        spoil(world, session)
    restart(world)
    assert "not-recovered" not in read_log(world)


def test_a_session_that_has_not_ended_is_found_among_many_that_have(world: RelayWorld) -> None:
    """Its agent works on under nobody's eyes otherwise."""
    for session in ENDED:
        write_session(Path(world.project), session, index=Path(world.folders.sessions), ended=True)
    alive = begin(world)
    restart(world)
    assert list_unended(world.folders.sessions) == [alive]
    restart(world)
    assert world.ask("where", session=alive)["state"] == "ready"


def test_a_session_that_goes_on_is_not_known_as_ended_any_more(world: RelayWorld) -> None:
    """A daemon killed while it works again would leave its agent alone for good."""
    session = begin(world)
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    restart(world)
    assert list_ended(world.folders.sessions) == {session}
    world.open("demo", session=session)
    assert list_ended(world.folders.sessions) == set()
    world.wait_for(session, lambda found: found.state is State.READY, "its agent is ready again")
    restart(world)
    assert world.ask("where", session=session)["state"] == "ready"


@pytest.mark.parametrize("moment", [f"after {SessionEnded.name}", f"before {SessionEnded.name}"])
def test_a_daemon_killed_while_a_session_ends_leaves_nothing_running(moment: str) -> None:
    """A session counts as ended only when all of its end was seen to: its holder is still there by then."""
    with relay_world() as world:
        world.start_daemon()
        session = begin(world)
        world.kill_daemons()
        frozen = world.start_daemon(pause_at=moment)
        world.ask("session.stop", session=session)
        wait_until(lambda: is_stopped(frozen.pid), "the daemon stands still")
        restart(world)
        world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
        wait_until(lambda: not world.find_workers(), "nothing is left")
