"""An agent that is signed out, at work under a real daemon: the user is told, and nobody takes over."""

from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from agent_relay.faces.cli.session.status import list_columns
from agent_relay.store.session_index import read_summary
from tests.support.at_work import begin, folder_of, has_taken_over, say
from tests.support.handoffs import write_screenplays
from tests.support.leg_client import type_into
from tests.support.relay_world import RelayWorld, relay_world

pytestmark = pytest.mark.size("test")

REFUSED = {"limit": "Invalid API key", "resets_in_s": 0}
TOLD = (
    "→ demo is signed out or its key is refused (Invalid API key). "
    "Sign in there and go on, or hand over: agent-relay relay"
)


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine whose first agent is signed out for one turn, and with the second prompt is not."""
    scenes = [{"when": "out", "do": [REFUSED]}, {"again": True, "do": [{"say": "heard"}]}]
    with relay_world() as made:
        made.environ |= write_screenplays(f"{made.folder}/plays", demo=scenes)
        made.start_daemon()
        yield made


def test_a_refused_agent_is_told_and_stays_until_it_answers(world: RelayWorld) -> None:
    """Only the user can sign in; once they have, nothing reminds them."""
    session = begin(world)
    say(world, session, "out")
    world.wait_for(session, lambda found: found.refusal is not None, "the refusal is journalled")
    world.wait_for(session, lambda found: found.state is State.READY, "the turn is over")
    where = world.ask("where", session=session)
    assert (where["agent"], where["message"], where["refused"]) == ("demo", TOLD, "Invalid API key")
    assert list_columns(read_summary(world.project, session))[-1] == (
        "signed out, or its key refused: Invalid API key"
    )
    say(world, session, "hello")
    found = world.wait_for(session, lambda found: found.refusal is None, "it answers again")
    assert (found.agent, found.done, len(found.legs)) == ("demo", (), 1)
    assert world.ask("where", session=session)["message"] == ""


def test_an_agent_that_leaves_refused_says_how_to_go_on(world: RelayWorld) -> None:
    """Its own last words went with its screen."""
    session = begin(world)
    say(world, session, "out")
    world.wait_for(session, lambda found: found.refusal is not None, "the refusal is journalled")
    world.wait_for(session, lambda found: found.state is State.READY, "the turn is over")
    type_into(folder_of(world, session), b"\x04")
    world.wait_for(session, lambda found: found.state is State.ENDED, "it has left")
    where = world.ask("where", session=session)
    assert where["message"] == (
        "→ demo is signed out or its key is refused (Invalid API key). "
        f"Sign in, then go on: agent-relay agent demo --session {session}"
    )
    assert (where["refused"], where["status"]) == ("Invalid API key", 0)


def test_a_refused_agent_is_handed_over_by_hand(world: RelayWorld) -> None:
    """The other way out the message names."""
    session = begin(world)
    say(world, session, "out")
    world.wait_for(session, lambda found: found.refusal is not None, "the refusal is journalled")
    world.ask("use", session=session, agent="understudy")
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
