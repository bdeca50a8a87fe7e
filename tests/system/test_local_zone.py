"""The user's day on the days on which clocks change."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from agent_relay.detect._resets import find_reset
from agent_relay.system.clock import LocalZone
from agent_relay.usage.budget_usage import find_day


@pytest.fixture(autouse=True)
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose clocks change on 29 March and 25 October 2026."""
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    "now", ["2026-10-24T22:10", "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T22:50"]
)
def test_the_day_on_which_clocks_go_back_has_25_hours_at_any_of_them(now: str) -> None:
    """A budget of the day counts its first hour in the evening too, and holds until its own midnight."""
    day = find_day(datetime.fromisoformat(now).replace(tzinfo=UTC), LocalZone())
    assert (day.name, day.begin.timestamp(), day.end.isoformat()) == (
        "2026-10-25",
        datetime(2026, 10, 24, 22, tzinfo=UTC).timestamp(),
        "2026-10-26T00:00:00+01:00",
    )


@pytest.mark.parametrize("now", ["2026-03-28T23:10", "2026-03-29T01:30", "2026-03-29T21:50"])
def test_the_day_on_which_clocks_go_forward_has_23_hours_at_any_of_them(now: str) -> None:
    """And takes none from the day before."""
    day = find_day(datetime.fromisoformat(now).replace(tzinfo=UTC), LocalZone())
    assert (day.name, day.begin.timestamp(), day.end.timestamp()) == (
        "2026-03-29",
        datetime(2026, 3, 28, 23, tzinfo=UTC).timestamp(),
        datetime(2026, 3, 29, 22, tzinfo=UTC).timestamp(),
    )


def test_a_moment_goes_into_the_zone_and_back_also_in_the_hour_that_comes_twice() -> None:
    """Two moments an hour apart stay two."""
    zone = LocalZone()
    moments = [datetime(2026, 10, 25, hour, 30, tzinfo=UTC) for hour in (0, 1)]
    local = [one.astimezone(zone) for one in moments]
    assert [(f"{one:%H:%M}", one.tzname(), one.dst()) for one in local] == [
        ("02:30", "CEST", None), ("02:30", "CET", None),
    ]  # fmt: skip
    assert [one.astimezone(UTC) for one in local] == moments
    assert (zone.utcoffset(None), zone.tzname(None)) == (None, None)


@pytest.mark.parametrize(
    ("text", "said", "expected"),
    [
        ("resets 3pm", "2026-10-27T12:00", "2026-10-27T14:00"),
        ("resets Oct 27, 3pm", "2026-10-24T12:00", "2026-10-27T14:00"),
        ("resets 3pm", "2026-10-24T12:00", "2026-10-24T13:00"),
    ],
)
def test_a_clock_time_of_a_reset_is_read_with_the_offset_of_its_own_day(
    text: str, said: str, expected: str
) -> None:
    """A limit of a week told in summer ends in winter; an agent must not rest an hour too short."""
    at = datetime.fromisoformat(said).replace(tzinfo=UTC)
    found = find_reset(text, ("date-clock", "clock"), at=at, zone=LocalZone())
    assert found is not None
    assert found.astimezone(UTC) == datetime.fromisoformat(expected).replace(tzinfo=UTC)


def test_a_day_that_begins_at_one_o_clock_takes_no_hour_of_the_day_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where clocks go forward at midnight there is no 00:00: Saturday ends when Sunday's 01:00 begins.

    In the last hour of that Saturday a budget of the day would have ended already, and count nothing more.
    """
    monkeypatch.setenv("TZ", "<-04>4<-03>,M9.1.6/24,M4.1.6/24")
    time.tzset()
    saturday = find_day(datetime(2026, 9, 6, 3, 30, tzinfo=UTC), LocalZone())
    sunday = find_day(datetime(2026, 9, 6, 4, 30, tzinfo=UTC), LocalZone())
    change = datetime(2026, 9, 6, 4, tzinfo=UTC)
    assert (saturday.name, saturday.end.astimezone(UTC)) == ("2026-09-05", change)
    assert (sunday.name, sunday.begin.astimezone(UTC)) == ("2026-09-06", change)
