"""Two terminals that want the same at the same moment get one session and one successor."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from agent_relay.domain.errors import RelayError
from tests.support.at_work import begin, has_taken_over
from tests.support.relay_world import RelayWorld

pytestmark = pytest.mark.size("test")


def open_both(world: RelayWorld, agent: str, *wishes: dict[str, object]) -> list[str]:
    """The sessions that two terminals were led to, or the sentence one was refused with."""

    def open_one(wish: dict[str, object]) -> str:
        try:
            return str(world.open(agent, **wish)["session"])
        except RelayError as error:
            return error.sentence

    with ThreadPoolExecutor(2) as both:
        return list(both.map(open_one, wishes))


def test_both_that_want_the_same_successor_are_led_to_it(world: RelayWorld) -> None:
    """Two windows, one habit: a second handoff would end the successor the first one began."""
    session = begin(world, task="paint the shed")
    assert open_both(world, "understudy", {}, {}) == [session, session]
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
    assert [event.body.name for event in world.events(session)].count("handoff.begun") == 1


def test_who_wants_something_else_of_a_successor_on_its_way_is_told(world: RelayWorld) -> None:
    """A focus that nobody would read must not look as if it had been taken."""
    session = begin(world, task="paint the shed")
    answers = open_both(world, "understudy", {"focus": "the roof"}, {"focus": "the door"})
    assert session in answers
    refused = [answer for answer in answers if answer != session]
    assert refused == ["a handoff to understudy is under way"]
    found = world.wait_for(session, has_taken_over, "the understudy took over")
    assert len(found.legs) == 2


def test_both_that_begin_at_once_share_the_first_session(world: RelayWorld) -> None:
    """Nobody ran here when either of them looked."""
    first, second = open_both(world, "demo", {}, {})
    assert first == second
    assert [leg.agent for leg in world.session(first).legs] == ["demo"]
