from collections.abc import Iterator

import pytest

from agent_relay.domain.state import State
from tests.support.relay_world import RelayWorld
from tests.support.seats import run
from tests.support.shells import shell_world

pytestmark = pytest.mark.size("test")


@pytest.fixture
def world() -> Iterator[RelayWorld]:
    """A machine with two scripted agents."""
    with shell_world() as made:
        yield made


def _run(world: RelayWorld, *words: str) -> tuple[int, str, str]:
    done = run(world, *words)
    return done.status, done.out, done.err


def _wait_for(world: RelayWorld, session: str, agent: str) -> None:
    world.wait_for(
        session,
        lambda found: found.agent == agent and found.handoff is None and found.state is State.READY,
        f"{agent} has taken over",
    )


def test_relay_goes_to_the_next_agent_and_undo_goes_back(world: RelayWorld) -> None:
    """The two words a person needs from another terminal: on, and back."""
    session = str(world.open("demo", task="hello")["session"])
    _wait_for(world, session, "demo")
    status, _, error = _run(world, "relay", "--focus", "the tests first")
    assert (status, error) == (0, "")
    _wait_for(world, session, "understudy")
    assert _run(world, "undo-handoff", session[-6:]) == (
        0,
        f"→ Handing session {session} back to demo.\n",
        "",
    )
    _wait_for(world, session, "demo")
    legs = world.session(session).legs
    assert legs[0].native_id == legs[2].native_id


@pytest.mark.size("every")
def test_undo_goes_back_where_no_agent_lives_any_more(world: RelayWorld) -> None:
    """Behind the relay key it has no terminal of its own, and was told to work without a screen instead."""
    session = str(world.open("demo", task="hello")["session"])
    _wait_for(world, session, "demo")
    world.open("understudy", session=session)
    _wait_for(world, session, "understudy")
    world.ask("session.stop", session=session)
    world.wait_for(session, lambda found: found.state is State.ENDED, "the session has ended")
    said = f"→ Handing session {session} back to demo.\n"
    assert _run(world, "undo-handoff", session[-6:]) == (0, said, "")
    _wait_for(world, session, "demo")


def test_what_cannot_be_passed_on_is_said_in_one_sentence(world: RelayWorld) -> None:
    """A script that meets no session must learn so, and nothing may be begun for it."""
    assert _run(world, "relay") == (
        2,
        "",
        "agent-relay: no session is running here\n  Name one; see: agent-relay sessions\n",
    )
    assert _run(world, "undo-handoff")[2].startswith("agent-relay: there is no session here\n")
    session = str(world.open("demo")["session"])
    _wait_for(world, session, "demo")
    status, _, error = _run(world, "undo-handoff")
    assert (status, error.splitlines()[0]) == (2, f"agent-relay: session {session} has had no handoff")
