"""Retries that nothing but the screen tells of: counted while their row stands, and no longer."""

from datetime import timedelta

import pytest

from agent_relay.domain.values import ClockJump
from tests.support.detecting import at, build, look, render, say

BUSY = "! server busy, try {}/5 (esc interrupts)"


def test_a_retry_that_stands_beside_a_transcript_for_as_long_as_patience_lasts_is_a_limit() -> None:
    """No record tells that the agent obeys a provider that asked for an hour."""
    detector = build()
    say(detector, 1, "user", "fix it")
    assert render(look(detector, 2, BUSY.format(1))) == ["retry transient - screen no"]
    assert detector.wakes_at() == at(302)
    assert look(detector, 200, BUSY.format(2)) == ()
    assert detector.tick(now=at(301)) == ()
    assert render(detector.tick(now=at(302))) == ["silent-limit account - clock acts"]


@pytest.mark.parametrize("trusts_screen", [False, True])
def test_a_retry_whose_row_is_gone_has_healed(*, trusts_screen: bool) -> None:
    """The agent thinks or runs a command for an hour then, and no record need tell of it."""
    detector = build(trusts_screen=trusts_screen)
    say(detector, 1, "user", "fix it")
    look(detector, 2, BUSY.format(1))
    look(detector, 10, "working")
    assert detector.wakes_at() is None
    assert look(detector, 400, "working") == ()
    assert detector.tick(now=at(4000)) == ()
    look(detector, 4001, BUSY.format(1))
    assert detector.wakes_at() == at(4301)


def test_a_screen_that_is_just_being_painted_does_not_end_a_series_of_retries() -> None:
    """The row is away for a moment whenever the lines above it move."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, BUSY.format(1))
    for seconds in (100, 200):
        look(detector, seconds, BUSY.format(1))
        look(detector, seconds + 1, "")
        assert detector.wakes_at() is None
        look(detector, seconds + 1.9, BUSY.format(2))
    assert detector.wakes_at() == at(302)


def test_a_retry_that_somebody_spoke_of_never_counts() -> None:
    """An answer may begin with the very row, and stands there for as long as nobody goes on."""
    detector = build()
    say(detector, 1, "agent", BUSY.format(1))
    look(detector, 2, BUSY.format(1))
    assert detector.wakes_at() is None
    assert detector.tick(now=at(1000)) == ()


def test_a_retry_without_a_conversation_to_compare_it_with_waits_for_one() -> None:
    """Until the transcript is found, nothing says whose words they are."""
    detector = build()
    look(detector, 2, BUSY.format(1))
    assert detector.wakes_at() is None
    say(detector, 3, "user", "fix it")
    look(detector, 4, BUSY.format(1))
    assert detector.wakes_at() == at(304)


def test_an_answer_begins_the_time_anew() -> None:
    """The row that stands after it is another request's."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 2, BUSY.format(1))
    say(detector, 100, "agent", "half of it is done")
    look(detector, 101, BUSY.format(1))
    assert detector.wakes_at() == at(401)


def test_a_clock_that_is_set_back_neither_ends_nor_lengthens_the_wait() -> None:
    """What was seen before it was set is compared with what will be seen by the clock as it is now."""
    detector = build()
    say(detector, 1, "user", "fix it")
    look(detector, 200, BUSY.format(1))
    detector.shift(ClockJump(by=timedelta(seconds=-150), since=at(50)))
    assert detector.wakes_at() == at(350)
    look(detector, 51, "")
    look(detector, 53, "")
    look(detector, 60, BUSY.format(1))
    assert detector.wakes_at() == at(360)
