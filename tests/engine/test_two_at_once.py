"""Two terminals that want the same at the same moment get one session and one successor."""

import pytest

from tests.support.at_work import WorkingWorld

pytestmark = pytest.mark.size("every")


@pytest.mark.size("test")
def test_both_that_want_the_same_successor_are_led_to_it(world: WorkingWorld) -> None:
    """Two windows, one habit: a second handoff would end the successor the first one began."""
    session = world.begin(task="paint the shed")
    assert world.open_both("understudy", {}, {}) == [session, session]
    found = world.wait_handed_over(session)
    assert [leg.agent for leg in found.legs] == ["demo", "understudy"]
    assert world.names(session).count("handoff.begun") == 1


def test_who_wants_something_else_of_a_successor_on_its_way_is_told(world: WorkingWorld) -> None:
    """A focus that nobody would read must not look as if it had been taken."""
    session = world.begin(task="paint the shed")
    answers = world.open_both("understudy", {"focus": "the roof"}, {"focus": "the door"})
    assert session in answers
    refused = [answer for answer in answers if answer != session]
    assert refused == ["a handoff to understudy is under way"]
    found = world.wait_handed_over(session)
    assert len(found.legs) == 2


def test_both_that_begin_at_once_share_the_first_session(world: WorkingWorld) -> None:
    """Nobody ran here when either of them looked."""
    first, second = world.open_both("demo", {}, {})
    assert first == second
    assert [leg.agent for leg in world.session(first).legs] == ["demo"]
