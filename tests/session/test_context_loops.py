"""Nothing about a full context loops: not by old records, nor a fresh start that is full, nor any course."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.effects import AwaitQuiet, ShowMessage
from agent_relay.domain.limits import ContextWishes
from tests.session.story import HANDOFF, NOW, filling

COMPACT = ContextWishes(mode="compact")


def test_records_of_another_leg_and_old_records_bring_nothing() -> None:
    """A forked or resumed transcript repeats what was true of another conversation."""
    story = filling().turn(300)
    noted = story.now.context
    assert story.fills(990, leg="L0").effects == []
    assert story.fills(990, at=NOW - timedelta(hours=1)).effects == []
    assert noted.read_at is not None
    assert story.fills(990, at=noted.read_at).effects == []
    assert story.now.context == noted


def test_a_record_from_before_the_compaction_does_not_arm_again() -> None:
    """A new daemon reads the leg's records from its start: the low ones are old."""
    story = filling(COMPACT).turn(100)
    low_at = story.now.context.read_at
    story.turn(950).quiet()
    late = story.moment
    story.wait(60)
    assert story.fills(100, at=low_at).effects == []
    assert story.fills(100, at=late).effects == []
    assert story.now.context.is_spent
    assert story.turn(960).effects == []


def test_a_fresh_leg_that_is_full_at_once_is_kept() -> None:
    """Another fresh start would be as full: a ceiling below what the packet needs must not loop."""
    story = filling().turn(950).quiet().take_over()
    story.wait(600)
    for _ in range(3):
        assert [effect for effect in story.turn(950).effects if not isinstance(effect, ShowMessage)] == []
    assert story.count("handoff.begun") == 1


def test_a_cooldown_lies_between_two_handoffs() -> None:
    """An agent that fills its context in minutes is not handed over every few minutes."""
    story = filling().turn(950).quiet().take_over()
    story.turn(100)
    assert AwaitQuiet(story.leg) not in story.turn(950).effects
    story.wait(10)
    assert AwaitQuiet(story.leg) in story.turn(960).effects


@given(
    st.lists(st.tuples(st.integers(0, 1100), st.floats(0.1, 30)), max_size=60),
    st.sampled_from([HANDOFF, COMPACT]),
)
def test_no_course_of_a_context_makes_a_loop(course: list[tuple[int, float]], wishes: ContextWishes) -> None:
    """However it rises and falls: never twice within the cooldown, and in one leg only after it was low."""
    story = filling(wishes)
    relieved: list[tuple[datetime, str]] = []
    lows: list[str] = []
    for used, minutes in course:
        story.wait(minutes)
        story.turn(used)
        if used < 600:
            lows.append(story.leg)
        if AwaitQuiet(story.leg) not in story.effects:
            continue
        story.quiet()
        if relieved:
            assert story.moment - relieved[-1][0] > timedelta(minutes=9.9)
            assert story.leg in lows
        relieved.append((story.moment, story.leg))
        lows.clear()
        if wishes.mode == "handoff":
            story.take_over()
    assert story.count("handoff.begun") + story.count("context.compacting") == len(relieved)
