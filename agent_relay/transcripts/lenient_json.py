"""Decode foreign JSON leniently: values by expected type, and lines that may be torn or mended.

Lines longer than `LINE_BYTES` are not looked at: they hold pasted images or dumped files.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from agent_relay.domain.text.patterns import compile_late

LINE_BYTES = 8 << 20
"""Longer lines hold pasted images or dumped files, not facts; decoding them would only cost memory."""


Record = TypeVar("Record")
_LAST_LINES = 6
_QUOTED_BYTES = 64 << 10
_SPEAKING = ("text", "content", "message", "prompt", "msg")
_HOLDING = ("payload", "data", "item", "info", "parts")

_MS = 1000
# Epoch values above this are milliseconds: as seconds they would lie beyond the year 5000.
_EPOCH_S = 100_000_000_000
# Nothing an agent wrote is older than this (2001) or later than that (2286); other numbers are no times.
_EARLIEST_S, _LATEST_S = 1_000_000_000, 10_000_000_000
# An escaped backslash, a whole surrogate pair, or half of one; compiled where it is needed, which is rare.
_ESCAPE = compile_late(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD](?P<half>[89a-fA-F][0-9a-fA-F]{2})"
)

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

# How surrogateescape writes the bytes 0x80 to 0xff: U+DC80 to U+DCFF.
_FIRST_BYTE, _LAST_BYTE = 0xC80, 0xCFF


class LineCounter:
    """How many lines could not be read, and the last ones as they stand.

    `skipped` are those of `seen` that were left out; of these `strange` are what nobody here understands:
    neither one too long to look at nor a last one that is being written. `last` are the last lines, `odd`
    the last strange ones.
    """

    __slots__ = ("last", "odd", "seen", "skipped", "strange")

    def __init__(self) -> None:
        self.seen = self.skipped = self.strange = 0
        self.last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self.odd: deque[bytes] = deque(maxlen=_LAST_LINES)

    def see(self, line: bytes) -> None:
        """Take note of a line that holds something."""
        self.seen += 1
        self.last.append(_shorten(line))

    def skip(self, line: bytes) -> None:
        """A line just seen is not understood."""
        self.skipped += 1
        self.strange += 1
        self.odd.append(_shorten(line))

    def list_last(self, *, is_understood: bool) -> tuple[str, ...]:
        """The last strange lines, or else the last ones of a transcript that is not understood at all."""
        found = self.odd or (() if is_understood else self.last)
        return tuple(line.decode("utf-8", "replace").strip() for line in found)


def _shorten(line: bytes) -> bytes:
    """The line, or how long it is: half of a secret would not be recognised as one."""
    return line if len(line) <= _QUOTED_BYTES else b"[a line of %d bytes]" % len(line)


def iterate_records(
    lines: Iterable[bytes], decoder: msgspec.json.Decoder[Record], counter: LineCounter
) -> Iterator[tuple[int, Record]]:
    """The line numbers (from 1) and records of `lines`; unreadable lines are counted, never raised."""
    decode = decoder.decode
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        counter.see(line)
        if len(line) > LINE_BYTES:
            counter.skipped += 1
            continue
        try:
            yield number, decode_mended(line, decode)
        except msgspec.ValidationError:
            found = _decode_known(line, decode)
            if found is not None:
                yield number, found
            else:
                counter.skip(line)
        except (msgspec.DecodeError, RecursionError):
            if line.endswith(b"\n"):
                counter.skip(line)
            else:
                counter.skipped += 1  # torn: it is being written, or its writer was killed


def _decode_known(line: bytes, decode: Callable[[bytes], Record]) -> Record | None:
    """The record without those of its fields that are not what they were; `None` where it is no object.

    A newer version writes one field differently: all that the others say is not lost for that.
    """
    try:
        fields = decode_mended(line, _fields.decode)
        known = {name: raw for name, raw in fields.items() if _is_known(name, raw, decode)}
        return decode(msgspec.json.encode(known))
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_known(name: str, raw: msgspec.Raw, decode: Callable[[bytes], Record]) -> bool:
    try:
        decode(msgspec.json.encode({name: raw}))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def has_words(value: object, *, depth: int = 4) -> bool:
    """Whether a record holds somebody's words, by the names every format gives them."""
    if depth and isinstance(value, list):
        return any(has_words(one, depth=depth - 1) for one in value)
    if not depth or not isinstance(value, dict):
        return False
    said = (value.get(name) for name in _SPEAKING)
    return any(isinstance(one, str) and one.strip() for one in said) or any(
        has_words(one, depth=depth - 1)
        for name, one in value.items()
        if name in _SPEAKING or name in _HOLDING
    )


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
    return _ESCAPE.sub(_mend_escape, data.decode("utf-8", "replace").encode())


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
