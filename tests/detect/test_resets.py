from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.detect._resets import find_duration, find_reset
from agent_relay.domain.documents.rules import ResetForm

AT = datetime(2026, 11, 20, 10, 31, 13, tzinfo=UTC)
ALL: tuple[ResetForm, ...] = ("date-clock", "clock", "iso", "epoch", "epoch-ms", "duration")
WARSAW = ZoneInfo("Europe/Warsaw")


@pytest.mark.parametrize(
    ("text", "form", "expected"),
    [
        ("resets 12:22pm (UTC)", "clock", "2026-11-20T12:22:00+00:00"),
        ("resets 3pm (UTC)", "clock", "2026-11-20T15:00:00+00:00"),
        ("resets 7:54am (America/New_York)", "clock", "2026-11-20T12:54:00+00:00"),
        ("resets 5pm (Europe/Warsaw).", "clock", "2026-11-20T16:00:00+00:00"),
        ("try again at 12:31 PM.", "clock", "2026-11-20T12:31:00+00:00"),
        ("Access resets at 11:54 AM UTC.", "clock", "2026-11-20T11:54:00+00:00"),
        ("Access resets at 1:54 PM GMT+2.", "clock", "2026-11-20T11:54:00+00:00"),
        ("resets at 12:54", "clock", "2026-11-20T12:54:00+00:00"),
        ("resets 12am (UTC)", "clock", "2026-11-21T00:00:00+00:00"),
        ("resets 9am (UTC)", "clock", "2026-11-21T09:00:00+00:00"),
        ("resets 10:30am (UTC)", "clock", "2026-11-20T10:30:00+00:00"),
        ("resets Nov 23, 9:44pm (UTC)", "date-clock", "2026-11-23T21:44:00+00:00"),
        ("try again at Nov 23rd, 2026 3:32 PM.", "date-clock", "2026-11-23T15:32:00+00:00"),
        ("resets Sep 15 at 7pm", "date-clock", "2027-09-15T19:00:00+00:00"),
        ("resets Jan 2, 2027, 9am (UTC)", "date-clock", "2027-01-02T09:00:00+00:00"),
        ("resets Nov 20, 10:29am (UTC)", "date-clock", "2026-11-20T10:29:00+00:00"),
        ("regain access on 2026-12-01 at 00:00 UTC.", "date-clock", "2026-12-01T00:00:00+00:00"),
        ("(resets 22:14 on 23 Nov)", "date-clock", "2026-11-23T22:14:00+00:00"),
        ("resets Nov 1st, 2026 3:32 PM", "date-clock", "2026-11-01T15:32:00+00:00"),
        ("limit reached|1795177936", "epoch", "2026-11-20T12:32:16+00:00"),
        ("2026-11-20T17:54:22Z", "iso", "2026-11-20T17:54:22+00:00"),
        ("will reset after 7h23m19s.", "duration", "2026-11-20T17:54:32+00:00"),
        ("try again in 5 days 22 hours 11 minutes.", "duration", "2026-11-26T08:42:13+00:00"),
        ("It will reset in 19 hours. To continue", "duration", "2026-11-21T05:31:13+00:00"),
    ],
)
def test_a_worded_reset_is_the_moment_it_names(text: str, form: ResetForm, expected: str) -> None:
    """Every wording comes from a recorded CLI or a public report."""
    found = find_reset(text, (form,), at=AT, zone=UTC)
    assert found is not None
    assert found.astimezone(UTC).isoformat() == expected


@pytest.mark.parametrize(
    ("value", "form", "expected"),
    [
        (1795177936, "epoch", "2026-11-20T12:32:16+00:00"),
        (1795177978484, "epoch-ms", "2026-11-20T12:32:58.484000+00:00"),
    ],
)
def test_numbers_of_records_are_read_as_epochs(value: int, form: ResetForm, expected: str) -> None:
    """Structured records carry seconds or milliseconds."""
    found = find_reset(value, (form,), at=AT, zone=UTC)
    assert found is not None
    assert found.isoformat() == expected


def test_what_names_no_moment_is_unknown() -> None:
    """An invented reset would put an agent to rest for nothing, or wake it too early."""
    rows = [
        "",
        "Try again later.",
        "resets 3",
        "resets 25:99",
        "version 1.2.3",
        "13pm",
        "|12",
    ]
    assert [text for text in rows if find_reset(text, ALL, at=AT, zone=UTC) is not None] == []


def test_a_day_that_does_not_exist_is_unknown() -> None:
    """A month has no 31st because a text says so."""
    assert find_reset("resets Feb 31, 9am", ("date-clock",), at=AT, zone=UTC) is None
    assert find_reset("resets Feb 29, 9am", ("date-clock",), at=AT, zone=UTC) is None


def test_values_that_are_no_moment_are_unknown() -> None:
    """Records are foreign: any type can stand in any field."""
    rows: list[object] = [None, True, 3, 10**15, float("nan"), float("inf"), [], {}]
    assert [value for value in rows if find_reset(value, ALL, at=AT, zone=UTC) is not None] == []


def test_an_iso_moment_that_cannot_be_is_unknown() -> None:
    """Neither a day that does not exist nor one no clock could be set to."""
    rows = ["2026-02-30T10:00:00Z", "0001-01-01T00:00:00Z", "2026-11-20T99:00"]
    assert [text for text in rows if find_reset(text, ("iso",), at=AT, zone=UTC) is not None] == []


def test_an_iso_moment_without_a_zone_is_in_the_leg_s() -> None:
    """Some records write local time."""
    found = find_reset("2026-11-20T13:00", ("iso",), at=AT, zone=WARSAW)
    assert found is not None
    assert found.astimezone(UTC) == datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_a_number_is_no_worded_moment() -> None:
    """Only epochs are numbers."""
    rows: list[ResetForm] = ["clock", "date-clock", "iso", "duration"]
    assert [form for form in rows if find_reset(1795177936, (form,), at=AT, zone=UTC) is not None] == []


def test_a_clock_that_is_none_is_passed_over_for_the_next() -> None:
    """`25:99` and a bare day number may stand before the time that is meant."""
    assert find_reset("at 25:99, resets 3pm", ("clock",), at=AT, zone=UTC) == AT.replace(
        hour=15, minute=0, second=0
    )
    text = "Nov 23, 99pm or Nov 24, 9pm"
    assert find_reset(text, ("date-clock",), at=AT, zone=UTC) == datetime(2026, 11, 24, 21, tzinfo=UTC)


def test_a_span_ends_where_other_words_begin() -> None:
    """What follows is about something else."""
    span = find_duration("in 1h then 30m more")
    assert span == timedelta(hours=1)


def test_a_text_without_a_zone_means_the_leg_s_zone() -> None:
    """Codex prints local time and no zone name."""
    found = find_reset("try again at 12:31 PM", ("clock",), at=AT, zone=WARSAW)
    assert found is not None
    assert found.astimezone(UTC) == datetime(2026, 11, 20, 11, 31, tzinfo=UTC)


def test_an_unknown_zone_name_means_the_leg_s_zone() -> None:
    """Agents print their own local zone, under names no table holds."""
    found = find_reset("Access resets at 12:31 PM CET.", ("clock",), at=AT, zone=WARSAW)
    assert found is not None
    assert found.astimezone(UTC) == datetime(2026, 11, 20, 11, 31, tzinfo=UTC)
    assert find_reset("resets 3pm (Nowhere/Land)", ("clock",), at=AT, zone=UTC) is not None


def test_a_clock_time_in_the_hour_that_comes_twice_is_the_first_still_to_come() -> None:
    """On 25 October 2026 Warsaw lives 02:30 twice."""
    between = datetime(2026, 10, 25, 0, 45, tzinfo=UTC)
    found = find_reset("2:30am (Europe/Warsaw)", ("clock",), at=between, zone=UTC)
    assert found is not None
    assert found.astimezone(UTC) == datetime(2026, 10, 25, 1, 30, tzinfo=UTC)


def test_a_clock_time_in_the_hour_that_never_comes_is_still_a_moment() -> None:
    """On 29 March 2026 Warsaw skips 02:30; the agent said so anyway."""
    before = datetime(2026, 3, 28, 23, 0, tzinfo=UTC)
    found = find_reset("2:30am (Europe/Warsaw)", ("clock",), at=before, zone=UTC)
    assert found is not None
    assert found.astimezone(UTC).date() == before.date() + timedelta(days=1)


def test_the_first_form_that_fits_wins() -> None:
    """A dated text holds a clock time too; the date must not be lost."""
    found = find_reset("resets Nov 23, 9:44pm (UTC)", ("date-clock", "clock"), at=AT, zone=UTC)
    assert found == datetime(2026, 11, 23, 21, 44, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30548425ms", 30548.425),
        ("59m 58s", 3598),
        ("1h", 3600),
        ("5h 16m", 18960),
        ("26599.1s", 26599.1),
        ("2 weeks", 1209600),
    ],
)
def test_durations_of_every_spelling_are_read(text: str, seconds: float) -> None:
    """Planned waits decide whether a retry is a limit."""
    span = find_duration(text)
    assert span is not None
    assert span.total_seconds() == pytest.approx(seconds)


def test_what_is_no_duration_is_unknown() -> None:
    """Half a word is no unit."""
    rows: list[object] = ["", "soon", "5 apples", "10 minuets", 7, "99999999999999d"]
    assert [text for text in rows if find_duration(text) is not None] == []


@given(st.text(max_size=60), st.integers(min_value=1_577_836_800, max_value=2_051_222_400))
def test_a_clock_reset_is_never_past(text: str, epoch_s: int) -> None:
    """Whatever an agent prints, resting never ends before it began (but for a minute just passed)."""
    moment = datetime.fromtimestamp(epoch_s, UTC)
    found = find_reset(text, ("clock",), at=moment, zone=WARSAW)
    assert found is None or found >= moment - timedelta(minutes=5)


@pytest.mark.parametrize(
    ("value", "form", "seconds"),
    [
        (4000, "seconds", 4000.0),
        (4000, "milliseconds", 4.0),
        ("3600", "seconds", 3600.0),
        (" 26599.1 ", "seconds", 26599.1),
        ("0", "seconds", 0.0),
        (1500.5, "milliseconds", 1.5005),
        ("3600s", "seconds", None),
        ("-1", "seconds", None),
        (-1, "milliseconds", None),
        (True, "seconds", None),
        (float("nan"), "seconds", None),
        (1e12, "seconds", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", "seconds", None),
        (4000, "duration", None),
    ],
)
def test_a_bare_number_is_a_span_in_the_unit_its_rule_names(
    value: object, form: ResetForm, seconds: float | None
) -> None:
    """Agents write `wait_s`, `retry-after` and `delay_ms`: without the unit a number says nothing."""
    at = datetime(2026, 11, 20, 12, tzinfo=UTC)
    expected = None if seconds is None else at + timedelta(seconds=seconds)
    assert find_reset(value, (form,), at=at, zone=UTC) == expected
