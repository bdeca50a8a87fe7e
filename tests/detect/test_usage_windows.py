"""Usage windows as the daemon tells them and as people read them."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.detect.window_usage import (
    WindowUsage,
    list_current_windows,
    parse_windows,
    render_window,
    render_windows,
)

NOW = datetime(2026, 11, 20, 18, 20, tzinfo=UTC)
SESSION = WindowUsage("five_hour", 300, 42.4, NOW + timedelta(hours=2, minutes=40))
WEEK = WindowUsage("seven_day", 10_080, 13.0, NOW + timedelta(days=4))


def test_windows_arrive_as_they_were_told() -> None:
    """The daemon and the shell are two processes."""
    told = render_windows({"demo": (SESSION, WEEK)})
    assert told == {
        "demo": [
            ["five_hour", 300, 42.4, "2026-11-20T21:00:00+00:00"],
            ["seven_day", 10_080, 13.0, "2026-11-24T18:20:00+00:00"],
        ]
    }
    assert parse_windows(told) == {"demo": (SESSION, WEEK)}


def test_what_is_no_window_is_passed_over() -> None:
    """A daemon of another version is no reason for a shell without a prompt."""
    rows: list[object] = [
        None,
        [],
        {"demo": None},
        {"demo": []},
        {"demo": ["five_hour"]},
        {"demo": [["five_hour", 300, "42", "2026-11-20T21:00:00+00:00"]]},
        {"demo": [["five_hour", 300, 42, "soon"]]},
        {"demo": [["five_hour", 300, float("nan"), "2026-11-20T21:00:00+00:00"]]},
        {"demo": [["five_hour", 300, 10**400, "2026-11-20T21:00:00+00:00"]]},
        {"demo": [["five_hour", 300, -1, "2026-11-20T21:00:00+00:00"]]},
    ]
    assert [told for told in rows if parse_windows(told) != {}] == []


def test_the_shortest_window_comes_first_and_one_that_began_anew_is_unknown() -> None:
    """A percentage from before the reset is wrong by now."""
    assert list_current_windows([WEEK, SESSION], NOW) == [SESSION, WEEK]
    assert list_current_windows([WEEK, SESSION], NOW + timedelta(hours=3)) == [WEEK]


@pytest.mark.parametrize(
    ("minutes", "name"),
    [(300, "5 h"), (10_080, "week"), (1440, "day"), (43_200, "30 d"), (90, "90 min"), (0, "five hour")],
)
def test_a_window_is_called_by_its_length(minutes: int, name: str) -> None:
    """What a provider calls it in its records is nobody's word for it."""
    window = WindowUsage("five_hour", minutes, 42.4, SESSION.resets_at)
    assert render_window(window, NOW, UTC, is_long=False) == f"{name} 42 %"


def test_the_reset_is_a_time_today_and_a_day_later_on() -> None:
    """That is what one plans by."""
    assert render_window(SESSION, NOW, UTC, is_long=True) == "5 h 42 % (resets 21:00)"
    assert render_window(WEEK, NOW, UTC, is_long=True) == "week 13 % (resets Nov 24, 18:20)"
