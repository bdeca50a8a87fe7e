"""Read what an agent's records say: their time, the native session's names, and totals of tokens.

The time of a record is found in every known shape. Its fields may name the native session's id and the
path of its transcript. The totals are what a conversation had used before a moment.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.domain.documents.adapter import SourceSpec, Totals
from agent_relay.domain.documents.record_matching import find_dotted, find_value, is_meant
from agent_relay.domain.errors import RelayError
from agent_relay.domain.limits import Record
from agent_relay.session.turns.output import read_tokens
from agent_relay.sources.record_framing import parse_object
from agent_relay.sources.transcript_files import iterate_lines

_PLACES = (
    *("at", "timestamp", "attributes/event.timestamp", "hrTime", "statusUpdatedAt", "updatedAt", "time", "t"),
    "properties/time",
)
_TEXT_HEAD = re.compile(r"\[?(?:(?:timestamp|time|ts)=)?\"?(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[^\]\s\"]*)")

# Seconds since the epoch stay below this until the year 5138; milliseconds passed it in 1973.
_MILLISECONDS_FROM = 100_000_000_000
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST = datetime(2200, 1, 1, tzinfo=UTC)


def find_record_time(data: Mapping[str, object]) -> datetime | None:
    """Return the moment `data` was written by its own account (aware, UTC), or `None` without one.

    Looked for in this order: the fields `at`, `timestamp`, `attributes."event.timestamp"`, `hrTime`
    (`[seconds, nanoseconds]`), `statusUpdatedAt`, `updatedAt`, `time`, `t`, `properties.time`; then the
    head of `text`, a log line. A local time without its zone could mean any moment and counts as none.
    """
    for place in _PLACES:
        moment = _parse_moment(find_value(data, place))
        if moment is not None:
            return moment
    text = data.get("text")
    head = _TEXT_HEAD.match(text) if isinstance(text, str) else None
    return _parse_moment(head.group(1)) if head else None


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


def find_names(specs: Sequence[SourceSpec], record: Record) -> dict[str, str]:
    """Return the `native_id` and `transcript` in the record, from the fields its source's spec names."""
    found: dict[str, str] = {}
    for spec in specs:
        if spec.role == record.source and is_meant(spec.names_where, record.data):
            for name, path in spec.names.items():
                value = find_dotted(record.data, path)
                if isinstance(value, str) and value:
                    found[name] = value
    return found


def read_totals(path: str, totals: Totals, *, before: datetime) -> Mapping[str, int] | None:
    """Return the newest totals recorded before that moment (aware), by kind of token.

    The result is `None` if there are none, or if the transcript cannot be read.
    """
    words = [value.encode() for value in totals.where.equals.values() if isinstance(value, str)]
    found: Mapping[str, int] | None = None
    try:
        for line in iterate_lines(path):
            record = parse_object(line) if all(word in line for word in words) else None
            if record is None or not is_meant(totals.where, record):
                continue
            at = find_record_time(record)
            if at is not None and at < before:
                found = read_tokens(totals.tokens, record)
    except RelayError:
        return None
    return found
