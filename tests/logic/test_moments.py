"""Moments in text: ours in files, and as people read them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from agent_relay.logic.moments import parse_moment, render_moment

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
