"""Parse byte streams into records, the same ones however the bytes are cut.

There are framings for lines of JSON, log entries, JSON texts one after the other, whole documents, and the
events of a server's event stream.
"""

import re
from collections.abc import Callable
from typing import Literal, Protocol

from agent_relay.transcripts.stream_parser import (
    MAX_RECORD_BYTES,
    Data,
    Framed,
    JsonStream,
    LineSplitter,
    parse_object,
)


class EventStream:
    """`sse`: the JSON objects in the `data:` lines of a server's event stream.

    Only the data counts: event names, ids, retry times and comments are ignored (WHATWG HTML,
    "Server-sent events"). Lines end in LF, CR LF or CR.
    """

    is_waiting = False

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self._lines = LineSplitter(max_bytes)
        self._max_bytes = max_bytes
        self._broken = 0
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._event_at = 0

    @property
    def boundary(self) -> int:
        """Bytes up to the last whole line's end."""
        return self._lines.consumed

    @property
    def dropped(self) -> int:
        """Number of dropped events."""
        return self._broken + self._lines.oversized

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the events that the blank lines in `chunk` completed."""
        records: list[Framed] = []
        for at, line in self._lines.split(self._unify(chunk)):
            if not line:
                records += self._dispatch()
            elif line.startswith(b"data:"):
                self._take(at, line[5:].removeprefix(b" "))
        return records

    def flush(self) -> list[Framed]:
        """Return nothing: an event without its blank line is incomplete and is discarded with its stream."""
        return []

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        return [data for _, data in self.frame(chunk)]

    def _unify(self, chunk: bytes) -> bytes:
        """Replace every line end in the chunk by one newline; a CR LF may be cut in two."""
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, at: int, value: bytes) -> None:
        if not self._data:
            self._event_at = at
        self._size += len(value) + 1
        if self._size <= self._max_bytes:
            self._data.append(value)

    def _dispatch(self) -> list[Framed]:
        data, size = self._data, self._size
        self._data, self._size = [], 0
        if not size:
            return []
        value = parse_object(b"\n".join(data)) if size <= self._max_bytes else None
        if value is None:
            self._broken += 1
            return []
        return [(self._event_at, value)]


Framing = Literal["jsonl", "lines", "json-stream", "json", "sse"]

_LOG_HEADS = (
    rb"\[\d{4}-\d\d-\d\d[T ][^\]\n]*\] \[[A-Za-z]+\]",  # [2026-11-20T10:30:57.037Z] [WARN] …
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d",  # 2026-11-20T10:30:57 …
    rb"(?:timestamp|time|ts|level)=",  # logfmt
)
_LOG_HEAD = re.compile(b"|".join(b"(?:%s)" % head for head in _LOG_HEADS))


class Framer(Protocol):
    """The parser of one stream.

    `boundary` counts the bytes up to the last record's end: a reader that restarts there loses and repeats
    nothing. `dropped` counts records that were broken or over the size limit.
    """

    @property
    def boundary(self) -> int:
        """Bytes that need not be read again."""
        ...

    @property
    def dropped(self) -> int:
        """Number of dropped records."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Whether `flush` would return something: a record whose end is not certain yet."""
        ...

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the records that `chunk` completed, each with the byte its text starts at."""
        ...

    def flush(self) -> list[Framed]:
        """Return the record whose end is not certain yet; a pause in the stream counts as its end."""
        ...

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        ...


def build_framer(framing: Framing, max_bytes: int = MAX_RECORD_BYTES) -> Framer:
    """Build a parser for a stream of that framing; records over `max_bytes` are dropped and counted."""
    return _FRAMERS[framing](max_bytes)


class JsonLines:
    """`jsonl`: one JSON object a line; blank lines are ignored, broken ones are dropped."""

    is_waiting = False

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self._lines = LineSplitter(max_bytes)
        self._broken = 0

    @property
    def boundary(self) -> int:
        """Bytes up to the last whole line's end."""
        return self._lines.consumed

    @property
    def dropped(self) -> int:
        """Number of dropped lines."""
        return self._broken + self._lines.oversized

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the objects of the lines that `chunk` completed."""
        records: list[Framed] = []
        for at, line in self._lines.split(chunk):
            if not line.strip():
                continue
            data = parse_object(line)
            if data is None:
                self._broken += 1
            else:
                records.append((at, data))
        return records

    def flush(self) -> list[Framed]:
        """Return nothing: a line without its newline is still being written."""
        return []

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        return [data for _, data in self.frame(chunk)]


class LogLines:
    """`lines`: `{"text": …}` for each log entry, with the lines below it that begin no entry of their own.

    The end of an entry shows only when the next one begins, which may be hours away; therefore a reader
    flushes when the file has been quiet. A line that continues no entry is an entry of its own.
    """

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self.boundary = 0
        self._lines = LineSplitter(max_bytes)
        self._max_bytes = max_bytes
        self._overlong = 0
        self._entry: list[bytes] = []
        self._entry_at = 0
        self._entry_size = 0

    @property
    def dropped(self) -> int:
        """Number of dropped entries."""
        return self._overlong + self._lines.oversized

    @property
    def is_waiting(self) -> bool:
        """Whether an entry is open."""
        return bool(self._entry)

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the entries that ended because `chunk` began the next one."""
        records: list[Framed] = []
        for at, raw in self._lines.split(chunk):
            line = raw.removesuffix(b"\r")
            headed = _LOG_HEAD.match(line) is not None
            if self._entry and not headed:
                self._continue(line)
                continue
            records += self._close()
            if headed:
                self._entry, self._entry_at, self._entry_size = [line], at, len(line)
            elif line.strip():
                records.append((at, _build_entry([line])))
        self.boundary = self._entry_at if self._entry else self._lines.consumed
        return records

    def flush(self) -> list[Framed]:
        """Return the open entry, as far as its lines are complete."""
        self.boundary = self._lines.consumed
        return self._close()

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        return [data for _, data in self.frame(chunk)]

    def _continue(self, line: bytes) -> None:
        self._entry_size += len(line) + 1
        if self._entry_size <= self._max_bytes:
            self._entry.append(line)

    def _close(self) -> list[Framed]:
        if not self._entry:
            return []
        entry, self._entry = self._entry, []
        if self._entry_size > self._max_bytes:
            self._overlong += 1
            return []
        return [(self._entry_at, _build_entry(entry))]


def _build_entry(lines: list[bytes]) -> Data:
    return {"text": b"\n".join(lines).decode("utf-8", "replace").rstrip()}


class JsonDocument:
    """`json`: one JSON object that is the whole file; `flush` parses it when the file has been read."""

    is_waiting = False

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self.boundary = 0
        self.dropped = 0
        self._max_bytes = max_bytes
        self._text = bytearray()

    def frame(self, chunk: bytes) -> list[Framed]:
        """Collect the bytes, up to the limit; return nothing yet."""
        self._text += chunk[: self._max_bytes + 1 - len(self._text)]
        return []

    def flush(self) -> list[Framed]:
        """Return the document, once; `dropped` grows if the text is no object or too long."""
        text, self._text = bytes(self._text), bytearray()
        data = parse_object(text) if len(text) <= self._max_bytes else None
        if data is None:
            self.dropped += 1
            return []
        self.boundary += len(text)
        return [(0, data)]

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed: none."""
        return [data for _, data in self.frame(chunk)]


_FRAMERS: dict[Framing, Callable[[int], Framer]] = {
    "jsonl": JsonLines,
    "lines": LogLines,
    "json-stream": JsonStream,
    "json": JsonDocument,
    "sse": EventStream,
}
