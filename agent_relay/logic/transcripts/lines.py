"""Lenient decoding: values of foreign records by expected type, and lines that may be torn."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from agent_relay.logic.transcripts.limits import LINE_BYTES

Record = TypeVar("Record")

_MS = 1000
# Epoch values above this are milliseconds: as seconds they would lie beyond the year 5000.
_EPOCH_S = 100_000_000_000
# Nothing an agent wrote is older than this (2001) or later than that (2286); other numbers are no times.
_EARLIEST_S, _LATEST_S = 1_000_000_000, 10_000_000_000
# An escaped backslash, a whole surrogate pair, or half of one; compiled where it is needed, which is rare.
_ESCAPE = (
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD](?P<half>[89a-fA-F][0-9a-fA-F]{2})"
)

# How surrogateescape writes the bytes 0x80 to 0xff: U+DC80 to U+DCFF.
_FIRST_BYTE, _LAST_BYTE = 0xC80, 0xCFF


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
            yield number, decode_mended(line, decode)
        except (msgspec.DecodeError, RecursionError):
            counter.skipped += bool(line.strip())


def decode_mended(data: bytes, decode: Callable[[bytes], Record]) -> Record:
    """What `decode` makes of `data`, mended where it must be. Raises DecodeError and RecursionError."""
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode(mend_json(data))


def mend_json(data: bytes) -> bytes:
    r"""JSON whose text can be decoded: half a surrogate pair and bytes that are not UTF-8 are written out.

    Programs that cut text by UTF-16 units leave half a pair, those that name undecodable files write each
    byte as one (`\udce9`); the byte becomes `\xe9` as in documents of ours, every other half U+FFFD.
    """
    return re.sub(_ESCAPE, _mend_escape, data.decode("utf-8", "replace").encode())


def _mend_escape(match: re.Match[bytes]) -> bytes:
    half = match["half"]
    if half is None:
        return match[0]
    unit = int(half, 16)
    return b"\\\\x%02x" % (unit & 0xFF) if _FIRST_BYTE <= unit <= _LAST_BYTE else b"\\ufffd"


def decode_raw(raw: msgspec.Raw) -> object:
    """The value of an undecoded field; `None` where it is absent or broken."""
    if not raw:
        return None
    return _decode(bytes(raw))


def decode_text(text: str) -> object:
    """The JSON value of `text`, `None` where it is none."""
    return _decode(text.encode("utf-8", "surrogatepass"))


def _decode(data: bytes) -> object:
    try:
        return decode_mended(data, msgspec.json.decode)
    except (msgspec.DecodeError, RecursionError):
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
