"""Parse byte streams into records in bounded memory, the same ones however the bytes are cut.

There are framings for lines of JSON, log entries, JSON texts one after the other, whole documents, and the
events of a server's event stream.
"""

import json
import re
from collections.abc import Callable
from typing import Literal

import msgspec

Data = dict[str, object]
Framed = tuple[int, Data]

MAX_RECORD_BYTES = 4 * 1024 * 1024

_TOKEN = re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"|\n\{|["{}]')
_STRING_REST = re.compile(rb'[^"\\\n]*+(?:\\.[^"\\\n]*+)*+')


def parse_object(text: bytes) -> Data | None:
    """Parse `text` as a JSON object; return `None` if it is none.

    Broken UTF-8 and lone surrogates become replacement marks.
    """
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = _parse_leniently(text)
    return value if isinstance(value, dict) else None


def _parse_leniently(text: bytes) -> object:
    try:
        loose = json.loads(text.decode("utf-8", "replace"))
        whole = json.dumps(loose, ensure_ascii=False).encode("utf-8", "replace")
        return json.loads(whole)
    except (ValueError, RecursionError):
        return None


Framing = Literal["jsonl", "lines", "json-stream", "json", "sse"]

_LOG_HEADS = (
    rb"\[\d{4}-\d\d-\d\d[T ][^\]\n]*\] \[[A-Za-z]+\]",  # [2026-11-20T10:30:57.037Z] [WARN] …
    rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d",  # 2026-11-20T10:30:57 …
    rb"(?:timestamp|time|ts|level)=",  # logfmt
)
_LOG_HEAD = re.compile(b"|".join(b"(?:%s)" % head for head in _LOG_HEADS))


class Framer:
    """The parser of one stream.

    `boundary` counts the bytes up to the last record's end: a reader that restarts there loses and repeats
    nothing. `is_waiting` is whether `flush` would return something: a record whose end is not certain yet.
    """

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self.boundary = 0
        self.is_waiting = False
        self._max_bytes = max_bytes

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the records that `chunk` completed, each with the byte its text starts at."""
        del chunk
        return []  # a whole document is no stream

    def flush(self) -> list[Framed]:
        """Return the record whose end is not certain yet; a pause in the stream counts as its end."""
        return []

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        return [data for _, data in self.frame(chunk)]


def build_framer(framing: Framing, max_bytes: int = MAX_RECORD_BYTES) -> Framer:
    """Build a parser for a stream of that framing; records over `max_bytes` are dropped."""
    return _FRAMERS[framing](max_bytes)


class LineSplitter:
    """Splits a stream into lines with their offsets; drops lines over the limit as they pass."""

    def __init__(self, max_bytes: int) -> None:
        self.consumed = 0
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """Return the lines that `chunk` completed, without newlines, each with its byte offset."""
        lines = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            if self._size <= self._max_bytes:
                lines.append((self.consumed, b"".join(self._parts)))
            self.consumed += self._size + 1
            self._parts.clear()
            self._size = 0
            start = end + 1
        self._keep(chunk[start:])
        return lines

    def _keep(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            self._parts.clear()
        elif part:
            self._parts.append(part)


class JsonLines(Framer):
    """`jsonl`: one JSON object a line; blank lines are ignored, broken ones are dropped."""

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        super().__init__(max_bytes)
        self._lines = LineSplitter(max_bytes)

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the objects of the lines that `chunk` completed."""
        records: list[Framed] = []
        for at, line in self._lines.split(chunk):
            data = parse_object(line) if line.strip() else None
            if data is not None:
                records.append((at, data))
        self.boundary = self._lines.consumed
        return records


class LogLines(Framer):
    """`lines`: `{"text": …}` for each log entry, with the lines below it that begin no entry of their own.

    The end of an entry shows only when the next one begins, which may be hours away; therefore a reader
    flushes when the file has been quiet. A line that continues no entry is an entry of its own.
    """

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        super().__init__(max_bytes)
        self._lines = LineSplitter(max_bytes)
        self._entry: list[bytes] = []
        self._entry_at = 0
        self._entry_size = 0

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
        self.is_waiting = bool(self._entry)
        return records

    def flush(self) -> list[Framed]:
        """Return the open entry, as far as its lines are complete."""
        self.boundary = self._lines.consumed
        return self._close()

    def _continue(self, line: bytes) -> None:
        self._entry_size += len(line) + 1
        if self._entry_size <= self._max_bytes:
            self._entry.append(line)

    def _close(self) -> list[Framed]:
        entry, self._entry, self.is_waiting = self._entry, [], False
        if not entry or self._entry_size > self._max_bytes:
            return []
        return [(self._entry_at, _build_entry(entry))]


def _build_entry(lines: list[bytes]) -> Data:
    return {"text": b"\n".join(lines).decode("utf-8", "replace").rstrip()}


class JsonStream(Framer):
    """`json-stream`: JSON objects one after the other, pretty-printed or not.

    A JSON string contains no raw newline, and pretty-printing indents what is nested: a `{` at a line's start
    while an object is open means that the object was torn, and the next one begins there. Every byte is
    looked at once, so a record that arrives in small pieces costs no more than a whole one.
    """

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        super().__init__(max_bytes)
        self._text = b""
        self._text_at = self._pos = self._depth = self._mark = self._size = 0
        self._in_string = self._torn = False
        self._parts: list[bytes] = []

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the objects that `chunk` completed, each with the offset of its first byte."""
        self._text += chunk
        records: list[Framed] = []
        while self._step(records):
            pass
        if self._depth:
            self._keep(self._pos)
        else:
            self.boundary = self._text_at + self._pos
        self._text = self._text[self._pos :]
        self._text_at += self._pos
        self._pos = self._mark = 0
        return records

    def _step(self, records: list[Framed]) -> bool:
        if self._in_string:
            return self._leave_string()
        return self._walk(records) if self._depth else self._open()

    def _open(self) -> bool:
        """Find the next object's first brace; after a torn one only at the start of a line."""
        if self._torn:
            newline = self._text.find(b"\n{", self._pos)
            start = newline + 1 if newline >= 0 else -1
        else:
            start = self._text.find(b"{", self._pos)
        if start < 0:
            self._pos = len(self._text) - (self._torn and self._text.endswith(b"\n", self._pos))
            return False
        self.boundary = self._text_at + start
        self._mark, self._pos, self._size = start, start + 1, 0
        self._depth, self._torn = 1, False
        return True

    def _walk(self, records: list[Framed]) -> bool:
        """Count braces outside strings until the object closes or the bytes run out."""
        depth = self._depth
        for token in _TOKEN.finditer(self._text, self._pos):
            text = token.group()
            if text == b"{":
                depth += 1
            elif text == b"}":
                depth -= 1
                if not depth:
                    self._close(token.end(), records)
                    return True
            elif text == b'"':
                self._depth, self._in_string, self._pos = depth, True, token.end()
                return True
            elif text == b"\n{":
                self._tear(token.start())
                return True
        self._depth = depth
        self._pos = len(self._text) - self._text.endswith(b"\n", self._pos)
        return False

    def _leave_string(self) -> bool:
        rest = _STRING_REST.match(self._text, self._pos)
        self._pos = rest.end() if rest else self._pos
        stop = self._text[self._pos : self._pos + 2]
        if stop.startswith(b'"'):
            self._in_string = False
            self._pos += 1
            return True
        if stop in (b"", b"\\"):
            return False
        self._tear(self._pos)
        return True

    def _close(self, end: int, records: list[Framed]) -> None:
        self._keep(end)
        data = parse_object(b"".join(self._parts)) if self._size <= self._max_bytes else None
        if data is not None:
            records.append((self.boundary, data))
        self._parts.clear()
        self._depth, self._pos = 0, end
        self.boundary = self._text_at + end

    def _tear(self, at: int) -> None:
        self._parts.clear()
        self._depth, self._in_string, self._torn = 0, False, True
        self._pos = at
        self.boundary = self._text_at + at

    def _keep(self, end: int) -> None:
        """Keep the open object's bytes up to `end`, unless it has outgrown the limit."""
        part = self._text[self._mark : end]
        self._size += len(part)
        if self._size > self._max_bytes:
            self._parts.clear()
        else:
            self._parts.append(part)


class EventStream(Framer):
    """`sse`: the JSON objects in the `data:` lines of a server's event stream.

    Only the data counts: event names, ids, retry times and comments are ignored (WHATWG HTML,
    "Server-sent events"). Lines end in LF, CR LF or CR.
    """

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        super().__init__(max_bytes)
        self._lines = LineSplitter(max_bytes)
        self._after_cr = False
        self._data: list[bytes] = []
        self._size = 0
        self._event_at = 0

    def frame(self, chunk: bytes) -> list[Framed]:
        """Return the events that the blank lines in `chunk` completed."""
        records: list[Framed] = []
        for at, line in self._lines.split(self._unify(chunk)):
            if not line:
                records += self._dispatch()
            elif line.startswith(b"data:"):
                self._take(at, line[5:].removeprefix(b" "))
        self.boundary = self._lines.consumed
        return records

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
        value = parse_object(b"\n".join(data)) if 0 < size <= self._max_bytes else None
        return [] if value is None else [(self._event_at, value)]


_FRAMERS: dict[Framing, Callable[[int], Framer]] = {
    "jsonl": JsonLines,
    "lines": LogLines,
    "json-stream": JsonStream,
    "json": Framer,
    "sse": EventStream,
}
