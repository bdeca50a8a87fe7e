"""A handoff that is tried again by hand goes on in front of whoever asked for it."""

import json

import pytest

from tests.support.at_work import has_taken_over
from tests.support.mute_agent import hand_over, is_at_rest, mutable_world, set_mute
from tests.support.relay_world import RelayWorld
from tests.support.seats import run, seat

pytestmark = pytest.mark.size("every")


def _leave_cancelled(world: RelayWorld) -> tuple[str, str]:
    session, handoff = hand_over(world)
    world.ask("handoff.cancel", session=session, handoff=handoff)
    world.wait_for(session, is_at_rest, "the session rests")
    set_mute(world, mute=False)
    return session, handoff


def test_a_retry_on_a_terminal_shows_the_successor() -> None:
    """Who has it tried again wants to see it work, as after `agent-relay AGENT`."""
    with mutable_world() as world:
        session, handoff = _leave_cancelled(world)
        with seat(world, "handoff", "retry", handoff, shows="ready | understudy") as person:
            person.type(b"\x1d/detach\r")
            assert person.wait_for_end() == 0
            assert "Detached; understudy keeps working." in person.text()
        assert world.wait_for(session, has_taken_over, "the understudy took over").done[0].id == handoff


def test_a_retry_without_a_terminal_says_what_goes_on_and_another_attaches_nothing() -> None:
    """A script is not to hang in an agent's screen, and a sentence that says why not to vanish under one."""
    with mutable_world() as world:
        session, handoff = _leave_cancelled(world)
        done = run(world, "handoff", "retry", handoff, "--json")
        assert (done.status, json.loads(done.out)["under_way"]) == (0, handoff)
        with seat(world, "handoff", "retry", handoff) as person:
            assert person.wait_for_end() == 2
            assert "agent-relay: handoff" in person.text()
        world.wait_for(session, has_taken_over, "the understudy took over")
