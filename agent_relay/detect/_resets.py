"""Parse when a limit ends: the many ways agents word a time, as an aware datetime or `None`."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agent_relay.domain.documents.rules import ResetForm
from agent_relay.domain.text.plain import compile_late

# A reset is printed with minute resolution and read a little later: one that has just passed is meant,
# not the same minute of tomorrow or next year.
JUST_PASSED = timedelta(minutes=5)
_LONGEST = timedelta(days=400)
_EARLIEST_EPOCH_S = 1_000_000_000
_LATEST_EPOCH_S = 7_000_000_000
_FIRST_YEAR, _LAST_YEAR = 2001, 2190
_MS_PER_S = 1000
_NOON = 12

# Blanks and names are counted: a run of thousands of them would be read again from each of its characters.
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d{2}))?(?::\d{2})?\s{0,8}(?P<half>[ap]\.?m\.?)?"
_ZONE = (
    r"(?:\s{0,8}\(?(?P<zone>[A-Z][A-Za-z]{1,20}(?:/[A-Za-z0-9_+\-]{1,30}){1,3}"
    r"|UTC|GMT(?:[+-]\d{1,2}(?::?\d{2})?)?|[A-Z]{2,5})\)?)?"
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"(?P<month>Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,9}\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_YEAR = r"(?P<year>\d{4})"
_GAP = r"\s{1,8}"
_FLAGS = re.IGNORECASE

_CLOCKS = (compile_late(rf"(?<![\d:]){_CLOCK}{_ZONE}(?![\d:])", _FLAGS),)
_DATE_CLOCKS = (
    compile_late(
        rf"{_MONTH}{_GAP}{_DAY}(?:,?{_GAP}{_YEAR})?,?(?:{_GAP}at)?{_GAP}{_CLOCK}{_ZONE}(?![\d:])", _FLAGS
    ),
    compile_late(
        rf"{_YEAR}-(?P<month>\d{{2}})-(?P<day>\d{{2}}),?(?:{_GAP}at)?{_GAP}{_CLOCK}{_ZONE}(?![\d:])", _FLAGS
    ),
    compile_late(rf"{_CLOCK}{_ZONE}{_GAP}on{_GAP}{_DAY}{_GAP}{_MONTH}(?:,?{_GAP}{_YEAR})?", _FLAGS),
)
_ISO = compile_late(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?")
_NUMBER = compile_late(r"(?<![\d.])\d{10,13}(?![\d.])")
_SPAN = compile_late(
    r"(?<!\d)(?P<count>\d{1,20}+(?:\.\d{1,20}+)?)\s{0,8}"
    r"(?P<unit>ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)(?![a-z])",
    _FLAGS,
)
_SPAN_GLUED = compile_late(r"(?<=\d)(?P<unit>ms|[smhdw])(?=\d)", _FLAGS)
_BARE = compile_late(r"\d{1,12}(?:\.\d{1,9})?")
_OFFSET = compile_late(r"GMT([+-])(\d{1,2})(?::?(\d{2}))?", _FLAGS)
_UNIT_S = {"w": 604_800.0, "d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def find_reset(value: object, forms: Sequence[ResetForm], *, at: datetime, zone: tzinfo) -> datetime | None:
    """Return the reset `value` names, read by the first of `forms` that fits, as an aware datetime.

    `value` is text or a number from a record; `at` is when it was said (aware), `zone` the leg's own
    zone for texts that name none. Clock times mean the nearest such moment at or after `at`, where one
    passed by at most `JUST_PASSED` still counts. A moment with its full date is taken as written.
    `None` if nothing fits: a reset is never invented.
    """
    for form in forms:
        found = _read(value, form, at, zone)
        if found is not None and _FIRST_YEAR <= found.year <= _LAST_YEAR:
            return found
    return None


def find_duration(value: object) -> timedelta | None:
    """Return the span in texts like `7h23m19s`, `5 days 22 hours`, `59m 58s`, `30548425ms`, or `None`."""
    if not isinstance(value, str):
        return None
    text = _SPAN_GLUED.sub(r"\g<unit> ", value)
    total = 0.0
    end = -1
    for match in _SPAN.finditer(text):
        if end >= 0 and text[end : match.start()].strip(" ,and"):
            break
        unit = match["unit"].lower()
        total += float(match["count"]) * _UNIT_S["ms" if unit.startswith(("ms", "mil")) else unit[0]]
        end = match.end()
        if total > _LONGEST.total_seconds():
            return None
    return timedelta(seconds=total) if end >= 0 else None


def find_span(value: object, unit: Literal["seconds", "milliseconds"]) -> timedelta | None:
    """Return the span a bare number of `unit` means; `None` for text with units and for nonsense."""
    per_second = 1 if unit == "seconds" else _MS_PER_S
    if isinstance(value, str):
        match = _BARE.fullmatch(value.strip())
        value = float(match[0]) if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if not 0 <= value <= _LONGEST.total_seconds() * per_second:
        return None
    return timedelta(seconds=value / per_second)


def _read(value: object, form: ResetForm, at: datetime, zone: tzinfo) -> datetime | None:
    match form:
        case "clock":
            found = _find_clock(value, at, zone)
        case "date-clock":
            found = _find_date_clock(value, at, zone)
        case "epoch":
            found = _find_epoch(value, 1)
        case "epoch-ms":
            found = _find_epoch(value, _MS_PER_S)
        case "duration" | "seconds" | "milliseconds":
            span = find_duration(value) if form == "duration" else find_span(value, form)
            found = at + span if span is not None else None
        case "iso":
            found = _find_iso(value, zone)
    return found


def _find_epoch(value: object, per_second: int) -> datetime | None:
    if isinstance(value, str):
        match = _NUMBER.search(value)
        value = int(match[0]) if match else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    # A whole number of any length can be compared, but not divided.
    if not _EARLIEST_EPOCH_S * per_second <= value <= _LATEST_EPOCH_S * per_second:
        return None
    return datetime.fromtimestamp(value / per_second, UTC)


def _find_iso(value: object, zone: tzinfo) -> datetime | None:
    match = _ISO.search(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        moment = datetime.fromisoformat(match[0])
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _find_clock(value: object, at: datetime, zone: tzinfo) -> datetime | None:
    if not isinstance(value, str):
        return None
    for match in _matches(_CLOCKS, value):
        time = _parse_clock(match)
        if time is None:
            continue
        there = _parse_zone(match["zone"], zone)
        today = at.astimezone(there).date()
        days = (today + timedelta(days=offset) for offset in (-1, 0, 1, 2))
        return _nearest((datetime(day.year, day.month, day.day, *time, tzinfo=there) for day in days), at)
    return None


def _find_date_clock(value: object, at: datetime, zone: tzinfo) -> datetime | None:
    if not isinstance(value, str):
        return None
    for match in _matches(_DATE_CLOCKS, value):
        time = _parse_clock(match)
        if time is None:
            continue
        there = _parse_zone(match["zone"], zone)
        name = match["month"].lower()
        month = int(name) if name.isdigit() else _MONTHS.index(name[:3]) + 1
        if match["year"]:
            return next(_days((int(match["year"]),), month, int(match["day"]), time, there), None)
        year = at.astimezone(there).year
        found = _nearest(_days((year - 1, year, year + 1), month, int(match["day"]), time, there), at)
        if found is not None:
            return found
    return None


def _days(
    years: Sequence[int], month: int, day: int, time: tuple[int, int], zone: tzinfo
) -> Iterator[datetime]:
    for year in years:
        try:
            yield datetime(year, month, day, *time, tzinfo=zone)
        except ValueError:
            continue


def _nearest(moments: Iterator[datetime], at: datetime) -> datetime | None:
    """Return the first moment not before `at`; of an hour that comes twice, the first still to come."""
    floor = at - JUST_PASSED
    both = (moment.replace(fold=fold) for moment in moments for fold in (0, 1))
    return min((moment for moment in both if _instant(moment) >= floor), key=_instant, default=None)


def _instant(moment: datetime) -> datetime:
    return moment.astimezone(UTC)


def _matches(patterns: Sequence[re.Pattern[str]], text: str) -> Iterator[re.Match[str]]:
    for pattern in patterns:
        yield from pattern.finditer(text)


def _parse_clock(match: re.Match[str]) -> tuple[int, int] | None:
    """Return hour and minute, or `None` for a bare number: `3` is no clock, `3pm` and `15:00` are."""
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), match["half"]
    if half is None and match["minute"] is None:
        return None
    if half is not None:
        if not 1 <= hour <= _NOON:
            return None
        hour = hour % _NOON + (_NOON if half.lower().startswith("p") else 0)
    return (hour, minute) if hour < 24 and minute < 60 else None  # noqa: PLR2004 - a day's own measures


def _parse_zone(name: str | None, zone: tzinfo) -> tzinfo:
    """Return the zone a text names; agents print their own zone, so an unknown one is the leg's."""
    if not name:
        return zone
    if name.upper() in {"UTC", "GMT"}:
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        span = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(-span if offset[1] == "-" else span) if span < timedelta(hours=24) else zone
    try:
        return ZoneInfo(name) if "/" in name else zone
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return zone
