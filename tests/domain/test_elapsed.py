"""Spans and orders of moments told by a clock that was set in between."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.values import ClockJump, has_passed, is_later, start_at

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def test_time_asleep_is_not_elapsed() -> None:
    """An agent that did not run did not wait."""
    slept = ClockJump(8 * HOUR, NOON + 8 * HOUR)
    start = start_at(NOON).after(slept)
    assert start.get_elapsed(NOON + 8 * HOUR + timedelta(minutes=5)) == timedelta(minutes=5)
    assert start.at == NOON


def test_a_start_is_no_later_than_what_came_after_it_by_a_clock_set_back() -> None:
    """All that an agent writes from then on would be history."""
    back = ClockJump(-3 * HOUR, NOON - 2 * HOUR)
    start = start_at(NOON).after(back)
    assert start.at == NOON - 2 * HOUR
    assert start.get_elapsed(NOON - HOUR) == 2 * HOUR
    assert start.after(ClockJump(3 * HOUR, NOON + 2 * HOUR)).get_elapsed(NOON + 2 * HOUR) == 2 * HOUR


def test_what_is_told_after_the_clock_was_set_back_is_later() -> None:
    """What was told before is yet to come by the clock of now."""
    assert is_later(NOON + HOUR, NOON, NOON + 2 * HOUR)
    assert not is_later(NOON, NOON + HOUR, NOON + 2 * HOUR)
    assert is_later(NOON - 3 * HOUR, NOON, NOON - 3 * HOUR)
    assert not is_later(NOON - timedelta(minutes=1), NOON, NOON - 3 * HOUR)


def test_nothing_waits_for_years_because_a_clock_was_ahead() -> None:
    """A cooldown of ten minutes would last as long as the clock was wrong."""
    assert not has_passed(HOUR, NOON, NOON + timedelta(minutes=59))
    assert has_passed(HOUR, NOON, NOON + HOUR)
    assert not has_passed(HOUR, NOON, NOON - timedelta(minutes=59))
    assert has_passed(HOUR, NOON + timedelta(days=3650), NOON)
