"""The hours in which nothing goes on by itself."""

from datetime import UTC, datetime, time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.domain.documents.config import UserConfig
from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.limits import NO_QUIET_HOURS, QuietHours, parse_quiet_hours

BERLIN = ZoneInfo("Europe/Berlin")
NIGHT = parse_quiet_hours("22:00-07:00")
NOON = parse_quiet_hours("12:30 - 13:30")


@pytest.mark.parametrize(
    ("hours", "at", "holds"),
    [
        (NIGHT, datetime(2026, 11, 24, 20, 59, tzinfo=UTC), False),
        (NIGHT, datetime(2026, 11, 24, 21, 0, tzinfo=UTC), True),
        (NIGHT, datetime(2026, 11, 25, 5, 59, tzinfo=UTC), True),
        (NIGHT, datetime(2026, 11, 25, 6, 0, tzinfo=UTC), False),
        (NOON, datetime(2026, 11, 24, 11, 30, tzinfo=UTC), True),
        (NOON, datetime(2026, 11, 24, 12, 30, tzinfo=UTC), False),
        (parse_quiet_hours("always"), datetime(2026, 11, 24, tzinfo=UTC), True),
        (NO_QUIET_HOURS, datetime(2026, 11, 24, tzinfo=UTC), False),
    ],
)
def test_quiet_hours_are_those_of_the_users_own_clock(
    hours: QuietHours, at: datetime, *, holds: bool
) -> None:
    """Who writes 22:00 means the clock on their wall, whatever the machine reckons in."""
    assert hours.contains(at, BERLIN) is holds


def test_work_may_go_on_when_they_are_over() -> None:
    """A reset at three in the morning is acted on at seven, that day or the next."""
    late, early = datetime(2026, 11, 24, 22, 30, tzinfo=UTC), datetime(2026, 11, 25, 2, 0, tzinfo=UTC)
    seven = datetime(2026, 11, 25, 6, 0, tzinfo=UTC)
    assert (NIGHT.find_next_allowed(late, BERLIN), NIGHT.find_next_allowed(early, BERLIN)) == (seven, seven)
    assert NIGHT.find_next_allowed(seven, BERLIN) == seven
    assert NOON.find_next_allowed(late, BERLIN) == late


def test_with_always_nothing_ever_goes_on_by_itself() -> None:
    """It is how to say never while I am away, whenever that is."""
    assert parse_quiet_hours(" always ").find_next_allowed(datetime(2026, 11, 24, tzinfo=UTC), BERLIN) is None


def test_the_night_on_which_clocks_change_ends_when_the_clock_says_so() -> None:
    """It is an hour longer, and the user still means seven."""
    before = datetime(2026, 10, 24, 21, 0, tzinfo=UTC)
    assert NIGHT.find_next_allowed(before, BERLIN) == datetime(2026, 10, 25, 6, 0, tzinfo=UTC)


@pytest.mark.parametrize("text", ["22-7", "22:00-24:00", "25:00-07:00", "never", "22:00-07:60", "22:00"])
def test_hours_that_cannot_be_read_are_named_in_a_plain_sentence(text: str) -> None:
    """A wish that is silently not kept costs a night's quota."""
    with pytest.raises(
        MistakeError, match=f'{text}\' is not a time range; write it like "22:00-07:00", or "always"'
    ):
        UserConfig(quiet_hours=text)


def test_hours_of_no_length_are_a_mistake() -> None:
    """Both readings, all day and never, would surprise somebody."""
    with pytest.raises(MistakeError, match='for every hour, write "always"'):
        UserConfig(quiet_hours="07:00-07:00")


@pytest.mark.parametrize("wish", ["yes", 1, "true", ["ask"]])
def test_a_wish_for_the_reset_is_ask_true_or_false(wish: object) -> None:
    """Whether work may go on unattended is not guessed from a word that is nearly yes."""
    with pytest.raises(MistakeError, match='it must be "ask", true or false'):
        UserConfig.parse({"resume_at_reset": wish})
    assert UserConfig.parse({"resume_at_reset": False}).resume_at_reset is False


CLOCKS = st.builds(time, st.integers(0, 23), st.integers(0, 59))


@given(CLOCKS, CLOCKS, st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)))  # noqa: DTZ001 - the strategy adds the zone
def test_there_is_always_an_end_within_a_day_and_an_hour(begin: time, end: time, at: datetime) -> None:
    """Work that somebody agreed to must not wait for ever, whatever clocks do."""
    opens = QuietHours(begin, end).find_next_allowed(at, BERLIN)
    assert opens is not None
    assert 0 <= (opens - at).total_seconds() <= 25 * 3600
