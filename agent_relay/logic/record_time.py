"""A structured record's own time, in whichever of the known shapes it is written."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime

_PLACES: tuple[tuple[str, ...], ...] = (
    ("at",),
    ("timestamp",),
    ("attributes", "event.timestamp"),
    ("hrTime",),
    ("statusUpdatedAt",),
    ("updatedAt",),
    ("time",),
    ("t",),
    ("properties", "time"),
)
_TEXT_HEAD = re.compile(r"\[?(?:(?:timestamp|time|ts)=)?\"?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]\s\"]*)")

# Seconds since the epoch stay below this until the year 5138; milliseconds passed it in 1973.
_MILLISECONDS_FROM = 100_000_000_000
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def find_record_time(data: Mapping[str, object]) -> datetime | None:
    """The moment `data` says it was written (aware, UTC), or `None` where it says none.

    Looked for in this order: the fields `at`, `timestamp`, `attributes."event.timestamp"`, `hrTime`
    (`[seconds, nanoseconds]`), `statusUpdatedAt`, `updatedAt`, `time`, `t`, `properties.time`; then the
    head of `text`, a log line. A local time without its zone could mean any moment and counts as none.
    """
    for place in _PLACES:
        moment = _parse_moment(_get_at(data, place))
        if moment is not None:
            return moment
    text = data.get("text")
    head = _TEXT_HEAD.match(text) if isinstance(text, str) else None
    return _parse_moment(head.group(1)) if head else None


def _get_at(data: Mapping[str, object], place: tuple[str, ...]) -> object:
    value: object = data
    for key in place:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _parse_moment(value: object) -> datetime | None:
    match value:
        case bool():
            return None
        case str():
            return _parse_iso(value)
        case int() | float():
            return _parse_epoch(value, 0)
        case [int() as seconds, int() as nanos]:
            return _parse_epoch(seconds, nanos)
        case _:
            return None


def _parse_iso(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
        return _bound(moment.astimezone(UTC)) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _parse_epoch(count: float, nanos: int) -> datetime | None:
    unit_s = 0.001 if abs(count) >= _MILLISECONDS_FROM else 1
    try:
        return _bound(datetime.fromtimestamp(count * unit_s + nanos / 1e9, UTC))
    except (ValueError, OverflowError, OSError):
        return None


def _bound(moment: datetime) -> datetime | None:
    return moment if _EARLIEST <= moment <= _LATEST else None
