"""Lenient decoding: values of foreign records by expected type, and lines that may be torn."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from agent_relay.logic.transcripts.shape import LINE_BYTES

Record = TypeVar("Record")

_MS = 1000
# Epoch values above this are milliseconds: as seconds they would lie beyond the year 5000.
_EPOCH_S = 100_000_000_000
# Nothing an agent wrote is older than this (2001) or later than that (2286); other numbers are no times.
_EARLIEST_S, _LATEST_S = 1_000_000_000, 10_000_000_000


class Counter:
    """How many lines could not be read."""

    __slots__ = ("skipped",)

    def __init__(self) -> None:
        self.skipped = 0


def iterate_records(
    lines: Iterable[bytes], decoder: msgspec.json.Decoder[Record], counter: Counter
) -> Iterator[tuple[int, Record]]:
    """The line numbers (from 1) and records of `lines`; unreadable lines are counted, never raised."""
    decode = decoder.decode
    for number, line in enumerate(lines, 1):
        if len(line) > LINE_BYTES:
            counter.skipped += 1
            continue
        try:
            yield number, decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
            counter.skipped += bool(line.strip())


def decode_raw(raw: msgspec.Raw) -> object:
    """The value of an undecoded field; `None` where it is absent or broken."""
    if not raw:
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def decode_text(text: str) -> object:
    """The JSON value of `text`, `None` where it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def get_map(value: object, *keys: str) -> Mapping[str, object]:
    """The mapping found by walking `keys` down from `value`; empty where there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_text(value: object, key: str) -> str:
    """The string under `key`, empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def get_list(value: object, key: str) -> list[object]:
    """The list under `key`, empty where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def get_count(value: object, key: str) -> int:
    """The non-negative whole number under `key`, 0 where there is none."""
    return max(0, get_whole(value, key) or 0)


def get_whole(value: object, key: str) -> int | None:
    """The whole number under `key`, `None` where there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found


def parse_moment(value: object) -> datetime | None:
    """An aware moment from an ISO string or an epoch in seconds or milliseconds, `None` if it is neither."""
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = value / _MS if value > _EPOCH_S else float(value)
    return datetime.fromtimestamp(seconds, UTC) if _EARLIEST_S < seconds < _LATEST_S else None


def join_text(content: object, *, kinds: tuple[str, ...] = ("text",)) -> str:
    """The text of a message's content: a string, or the parts whose `type` is one of `kinds`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [get_text(part, "text") for part in content if get_text(part, "type") in kinds]
    return "\n".join(text for text in texts if text)
