"""Moments in text: ours in files, and as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agent_relay.domain.moments import parse_moment, render_day, render_moment

NOW = datetime(2026, 11, 22, 18, 20, tzinfo=UTC)


def test_a_moment_of_ours_is_aware() -> None:
    """Its zone is kept."""
    assert parse_moment("2026-11-22T21:00:00+02:00") == datetime(
        2026, 11, 22, 21, tzinfo=timezone(timedelta(hours=2))
    )


@pytest.mark.parametrize("text", ["", "at nine", "2026-11-22T21:00:00", "2026-13-22T21:00:00+00:00", None, 7])
def test_what_a_damaged_file_holds_is_no_moment(text: object) -> None:
    """A moment without its zone could be any of a day's; nothing is compared with it."""
    assert parse_moment(text) is None


def test_the_day_is_told_where_it_is_another() -> None:
    """Nobody waits until nine for what comes the day after."""
    assert render_moment(NOW, NOW, UTC) == "18:20"
    assert render_moment(NOW + timedelta(days=1), NOW, UTC) == "Nov 23, 18:20"


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (datetime(2026, 11, 22, 18, 20, tzinfo=UTC), "today 18:20"),
        (datetime(2026, 11, 22, 0, 0, tzinfo=UTC), "today 00:00"),
        (datetime(2026, 11, 21, 23, 59, tzinfo=UTC), "yesterday 23:59"),
        (datetime(2026, 11, 20, 23, 59, tzinfo=UTC), "Nov 20"),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "Jan 2"),
        (datetime(2025, 11, 21, 9, 10, tzinfo=UTC), "Nov 21, 2025"),
        (datetime(2026, 11, 23, 9, 10, tzinfo=UTC), "Nov 23"),
    ],
)
def test_what_was_is_told_by_its_day(at: datetime, text: str) -> None:
    """Of what was last week the hour tells nothing, and of yesterday the date makes one count."""
    assert render_day(at, NOW, UTC) == text


def test_days_are_those_of_the_readers_zone() -> None:
    """Late in the evening it is tomorrow elsewhere."""
    zone = timezone(timedelta(hours=9))
    assert render_day(datetime(2026, 11, 22, 14, 30, tzinfo=UTC), NOW, zone) == "yesterday 23:30"
    assert render_day(datetime(2026, 11, 22, 15, 30, tzinfo=UTC), NOW, zone) == "today 00:30"
