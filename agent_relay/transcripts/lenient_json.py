"""Decode foreign JSON leniently: values by expected type, and lines that may be torn or mended.

Lines longer than `LINE_BYTES` are skipped: they hold pasted images or dumped files. Also here: the user's
words apart from what agents wrap around them, long output clipped in its middle, and the lines that an edit
added and removed.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from agent_relay.domain.text.plain import compile_late

LINE_BYTES = 8 << 20
"""Longest line that is decoded, in bytes: longer ones hold pasted images or dumped files, not facts."""


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
# JSON has numbers of any length; nothing that is counted needs more, and databases take no more.
_LARGEST = (1 << 63) - 1
# An escaped backslash, a whole surrogate pair, or half of one; compiled where it is needed, which is rare.
_ESCAPE = compile_late(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD](?P<half>[89a-fA-F][0-9a-fA-F]{2})"
)

_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])

# How surrogateescape writes the bytes 0x80 to 0xff: U+DC80 to U+DCFF.
_FIRST_BYTE, _LAST_BYTE = 0xC80, 0xCFF


class LineCounter:
    """Counts of lines seen and skipped, and the last lines verbatim.

    `skipped` are those of `seen` that were left out; of these `strange` are the ones that are not understood,
    without those too long to look at and a last one that is being written. `last` are the last lines, `odd`
    the last strange ones.
    """

    __slots__ = ("last", "odd", "seen", "skipped", "strange")

    def __init__(self) -> None:
        self.seen = self.skipped = self.strange = 0
        self.last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self.odd: deque[bytes] = deque(maxlen=_LAST_LINES)

    def see(self, line: bytes) -> None:
        """Count a line that is not blank."""
        self.seen += 1
        self.last.append(_shorten(line))

    def skip(self, line: bytes) -> None:
        """Count a line just seen as one that is not understood."""
        self.skipped += 1
        self.strange += 1
        self.odd.append(_shorten(line))

    def list_last(self, *, is_understood: bool) -> tuple[str, ...]:
        """List the last strange lines, else the last ones if the transcript is not understood at all."""
        found = self.odd or (() if is_understood else self.last)
        return tuple(line.decode("utf-8", "replace").strip() for line in found)


def _shorten(line: bytes) -> bytes:
    """Return the line, or its length if it is long: half of a secret would not be recognised as one."""
    return line if len(line) <= _QUOTED_BYTES else b"[a line of %d bytes]" % len(line)


def iterate_records(
    lines: Iterable[bytes], decoder: msgspec.json.Decoder[Record], counter: LineCounter
) -> Iterator[tuple[int, Record]]:
    """Yield the line numbers (from 1) and records of `lines`; unreadable lines are counted, not raised."""
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


def _decode_known(line: bytes, decode: Callable[[bytes | memoryview], Record]) -> Record | None:
    """Decode the record without the fields of an unexpected form; `None` if it is no object.

    A newer version may write one field differently; the others are still read.
    """
    try:
        fields = decode_mended(line, _fields.decode)
        known = {name: raw for name, raw in fields.items() if _is_known(name, raw, decode)}
        return decode_mended(msgspec.json.encode(known), decode)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_known(name: str, raw: msgspec.Raw, decode: Callable[[bytes | memoryview], Record]) -> bool:
    try:
        # What is left undecoded was not looked at yet: it may still hold bytes that are not UTF-8.
        decode_mended(msgspec.json.encode({name: raw}), decode)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def has_words(value: object, *, depth: int = 4) -> bool:
    """Check whether a record holds somebody's words, by the field names that every format uses."""
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


def decode_mended(data: bytes | memoryview, decode: Callable[[bytes | memoryview], Record]) -> Record:
    """Decode `data`, mended first if it is not valid JSON.

    Raises DecodeError and RecursionError.
    """
    try:
        return decode(data)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError):
        return decode(mend_json(bytes(data)))


def mend_json(data: bytes) -> bytes:
    r"""Mend JSON so that it decodes: escape half surrogate pairs and bytes that are not UTF-8.

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
    """Decode an undecoded field; return `None` if it is absent or broken."""
    if not raw:
        return None
    return _decode(bytes(raw))


def decode_text(text: str) -> object:
    """Decode the JSON in `text`; return `None` if it is not JSON."""
    return _decode(text.encode("utf-8", "surrogatepass"))


def _decode(data: bytes) -> object:
    try:
        return decode_mended(data, msgspec.json.decode)
    except (msgspec.DecodeError, RecursionError):
        return None


def get_map(value: object, *keys: str) -> Mapping[str, object]:
    """Return the mapping found by walking `keys` down from `value`, empty if there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def get_text(value: object, key: str) -> str:
    """Return the string under `key`, empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


def get_list(value: object, key: str) -> list[object]:
    """Return the list under `key`, empty if there is none."""
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def get_count(value: object, key: str) -> int:
    """Return the non-negative whole number under `key`, 0 if there is none."""
    return max(0, get_whole(value, key) or 0)


def get_whole(value: object, key: str) -> int | None:
    """Return the whole number under `key`, `None` if there is none that 64 bits hold."""
    found = value.get(key) if isinstance(value, dict) else None
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if -_LARGEST <= found <= _LARGEST else None


def parse_moment(value: object) -> datetime | None:
    """Parse an ISO string or an epoch in seconds or milliseconds into an aware moment.

    The result is `None` if `value` is neither, or no moment from 1970 to 2286.
    """
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            return None
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return aware if 0 < aware.timestamp() < _LATEST_S else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # Compared before it is divided: a whole number of any length may be too large for a float.
    if not _EARLIEST_S < value < _LATEST_S * _MS:
        return None
    seconds = value / _MS if value > _EPOCH_S else float(value)
    return datetime.fromtimestamp(seconds, UTC) if _EARLIEST_S < seconds < _LATEST_S else None


def join_text(content: object, *, kinds: tuple[str, ...] = ("text",)) -> str:
    """Return the text of a message's content: a string, or the parts whose `type` is one of `kinds`."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    texts = [get_text(part, "text") for part in content if get_text(part, "type") in kinds]
    return "\n".join(text for text in texts if text)


# How far from its place a cut may be made: longer than any secret in one piece but a key block.
_SEARCHED = 600
_CUT_ENDS = ("\n", " ", ",", ";")
_CUT_STARTS = tuple(map(compile_late, (r"\n", r"[,;]\s*", r"(?<=[^\s:=]{4}) (?=[^:=])")))


def compile_wrappers(*names: str) -> re.Pattern[str]:
    """Compile a pattern for whole elements of the given names; an unclosed one reaches to the end."""
    joined = "|".join(names)
    return compile_late(rf"<(?P<tag>{joined})(?:\s[^<>]*)?>.*?(?:</(?P=tag)>|\Z)", re.DOTALL)


def strip_wrappers(text: str, wrappers: re.Pattern[str]) -> str:
    """Remove the wrapped elements from `text`, and trim blank edges."""
    if "<" not in text:
        return text.strip()
    return wrappers.sub("", text).strip()


def clip(text: str, *, limit: int = 8000) -> str:
    """Cut `text` in its middle to at most `limit` characters, keeping more of its end: errors are there.

    It is cut between lines, in overlong lines at blanks or commas: half a key would not be recognised as one.
    """
    if len(text) <= limit:
        return text
    head = _find_end(text, limit // 4)
    tail = _find_start(text, len(text) - limit + limit // 4)
    return f"{text[:head]}\n[… {tail - head} characters left out …]\n{text[tail:]}"


def _find_end(text: str, at: int) -> int:
    """Return the last place up to `at` where a line or word ends, else `at`."""
    for mark in _CUT_ENDS:
        found = text.rfind(mark, max(0, at - _SEARCHED), at)
        if found >= 0:
            return found
    return at


def _find_start(text: str, at: int) -> int:
    """Return the first place from `at` where a line or word begins, but not a value cut off from its name."""
    for mark in _CUT_STARTS:
        found = mark.search(text, at, at + _SEARCHED)
        if found is not None:
            return found.end()
    return at


def count_hunks(lines: Iterable[object]) -> tuple[int, int]:
    """Count added and removed lines among the body lines of a diff, without file headers."""
    added = removed = 0
    for line in lines:
        if isinstance(line, str):
            added += line.startswith("+")
            removed += line.startswith("-")
    return added, removed


def count_unified(diff: str) -> tuple[int, int]:
    """Count added and removed lines of one file's unified diff, without headers before the first hunk."""
    return count_hunks(list_body(diff))


def list_body(diff: str) -> list[str]:
    """List the lines of one file's unified diff, without headers before the first hunk."""
    lines = diff.split("\n")
    first = next((index for index, line in enumerate(lines) if line.startswith("@@")), None)
    if first is None:
        # Without hunk marks the two header lines are told by their own form.
        return [line for line in lines if not line.startswith(("+++ ", "--- "))]
    return lines[first:]


def count_lines(text: str) -> int:
    """Count lines of `text` as a diff does: a last line without a line feed is a line."""
    return text.count("\n") + bool(text and not text.endswith("\n"))


def count_replacement(old: str, new: str) -> tuple[int, int]:
    """Count added and removed lines when `new` replaces `old`, without equal lines at both ends."""
    removed, added = find_replaced(old, new)
    return len(added), len(removed)


def find_replaced(old: str, new: str) -> tuple[list[str], list[str]]:
    """Return the lines removed and added when `new` replaces `old`, without equal lines at both ends."""
    before, after = (text.removesuffix("\n").split("\n") if text else [] for text in (old, new))
    shorter = min(len(before), len(after))
    same = 0
    while same < shorter and before[same] == after[same]:
        same += 1
    tail = 0
    while tail < shorter - same and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    return before[same : len(before) - tail], after[same : len(after) - tail]
