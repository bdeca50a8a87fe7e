"""An agent that is signed out, at work under a real daemon: the user is told, and nobody takes over."""

from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from agent_relay.faces.cli.session.status import list_columns
from agent_relay.store.session_index import read_summary
from tests.support.at_work import WorkingWorld, working_world

pytestmark = pytest.mark.size("every")

REFUSED = {"limit": "Invalid API key", "resets_in_s": 0}
TOLD = (
    "→ demo is signed out or its key is refused (Invalid API key). "
    "Sign in there and go on, or hand over: agent-relay relay"
)


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """A machine whose first agent is signed out for one turn, and with the second prompt is not."""
    scenes = [{"when": "out", "do": [REFUSED]}, {"again": True, "do": [{"say": "heard"}]}]
    with working_world(demo=scenes) as made:
        yield made


def begin_refused(world: WorkingWorld, **wish: object) -> str:
    """A session whose agent is signed out."""
    session = world.begin(**wish)
    world.say(session, "out")
    world.wait_for(session, lambda found: found.refusal is not None, "the refusal is journalled")
    world.wait_state(session, State.READY)
    return session


@pytest.mark.size("test")
def test_a_refused_agent_is_told_and_stays_until_it_answers(world: WorkingWorld) -> None:
    """Only the user can sign in; once they have, nothing reminds them."""
    session = begin_refused(world)
    where = world.ask("where", session=session)
    assert (where["agent"], where["message"], where["refused"]) == ("demo", TOLD, "Invalid API key")
    assert list_columns(read_summary(world.project, session))[-1] == (
        "signed out, or its key refused: Invalid API key"
    )
    world.say(session, "hello")
    found = world.wait_for(session, lambda found: found.refusal is None, "it answers again")
    assert (found.agent, found.done, len(found.legs)) == ("demo", (), 1)
    assert world.where(session, "message") == ""


def test_an_agent_that_leaves_refused_says_how_to_go_on_or_is_handed_over(world: WorkingWorld) -> None:
    """Its own last words went with its screen; the other way out is a handoff by hand."""
    session = begin_refused(world)
    world.type(session, b"\x04")
    world.wait_state(session, State.ENDED)
    where = world.ask("where", session=session)
    assert where["message"] == (
        "→ demo is signed out or its key is refused (Invalid API key). "
        f"Sign in, then go on: agent-relay agent demo --session {session}"
    )
    assert (where["refused"], where["status"]) == ("Invalid API key", 0)
    session = begin_refused(world, new=True)
    world.ask("use", session=session, agent="understudy")
    found = world.wait_handed_over(session)
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
