"""What a packet lacks is said, and what is known from elsewhere stands in for it."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.session import Leg
from agent_relay.domain.values import replace
from agent_relay.packet.handoff_facts import RecordGap, find_record_gap

BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LEG = Leg("L", "bob", 1, BEGAN, child_pid=7, was_busy=True)
ASKED = Message("user", "paint the shed", 1, BEGAN + timedelta(seconds=5))
OLD = Message("user", "paint the shed", 1, BEGAN - timedelta(hours=1))
WHOLE = Facts("bob", transcript="t", lines=7, conversation=(ASKED,))
NEWER = "bob may be newer than 1.2, the newest version known here"


def tell(facts: Facts, leg: Leg = LEG) -> RecordGap:
    """What is missing."""
    return find_record_gap(facts, agent="bob", version="1.2", leg=leg)


def test_nothing_is_missing_of_a_record_that_is_understood() -> None:
    """A leg that was asked nothing has nothing to say either."""
    assert tell(WHOLE) == RecordGap()
    assert tell(replace(WHOLE, conversation=(replace(ASKED, at=None),))) == RecordGap()
    assert tell(Facts("bob", transcript="t"), replace(LEG, was_busy=False)) == RecordGap()


def test_lines_that_are_not_understood_are_counted() -> None:
    """The reader is to know how much that is, and what it may come from."""
    assert tell(replace(WHOLE, strange_lines=3)) == RecordGap(
        f"3 of 7 lines of bob's own record could not be understood; {NEWER}"
    )


def test_a_record_without_a_word_of_the_leg_is_told_of() -> None:
    """It was cleared or begun anew, or speaks in a way nobody here has heard."""
    answer = replace(ASKED, role="assistant")
    why = f"bob's own record does not mention what it was last asked; {NEWER}"
    assert tell(replace(WHOLE, conversation=(OLD, answer))) == RecordGap(why, is_wordless=True)
    assert tell(replace(WHOLE, conversation=())) == RecordGap(why, is_wordless=True)


def test_an_agent_that_was_stopped_before_it_wrote_is_not_called_new() -> None:
    """A person who changes their mind within a second must not be told of another version."""
    why = "bob had not yet written what it was last asked into its own record"
    assert tell(replace(WHOLE, conversation=(OLD,))) == RecordGap(why, is_wordless=True)


def test_an_adopted_conversation_lacks_nothing_that_was_said_before() -> None:
    """Relay did not start its program: all of it is older than the leg that stands for it."""
    assert tell(replace(WHOLE, conversation=(OLD,)), replace(LEG, child_pid=0)) == RecordGap()


def test_a_record_that_was_not_found_is_told_of() -> None:
    """An agent that keeps its conversations elsewhere now must not look as if it had done nothing."""
    assert tell(Facts("bob")) == RecordGap(
        f"bob's own record of this work was not found; {NEWER}", is_wordless=True
    )
