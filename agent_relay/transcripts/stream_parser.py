"""Parse lines and JSON objects out of a byte stream cut anywhere, in bounded memory."""

import json
import re

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


class JsonStream:
    """JSON objects one after the other, pretty-printed or not (framing `json-stream`).

    A JSON string contains no raw newline, and pretty-printing indents what is nested: a `{` at a line's start
    while an object is open means that the object was torn, and the next one begins there. Every byte is
    looked at once, so a record that arrives in small pieces costs no more than a whole one.
    """

    is_waiting = False

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self.boundary = 0
        self.dropped = 0
        self._max_bytes = max_bytes
        self._text = b""
        self._text_at = 0
        self._pos = 0
        self._depth = 0
        self._in_string = False
        self._torn = False
        self._parts: list[bytes] = []
        self._mark = 0
        self._size = 0

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

    def flush(self) -> list[Framed]:
        """Return nothing: an object without its closing brace is still being written."""
        return []

    def feed(self, chunk: bytes) -> list[Data]:
        """Return the records that `chunk` completed."""
        return [data for _, data in self.frame(chunk)]

    def _step(self, records: list[Framed]) -> bool:
        if not self._depth:
            return self._open()
        if self._in_string:
            return self._leave_string()
        return self._walk(records)

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
        if data is None:
            self.dropped += 1
        else:
            records.append((self.boundary, data))
        self._parts.clear()
        self._depth, self._pos = 0, end
        self.boundary = self._text_at + end

    def _tear(self, at: int) -> None:
        self.dropped += 1
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


class LineSplitter:
    """Splits a stream into lines with their offsets; drops lines over the limit as they pass."""

    def __init__(self, max_bytes: int) -> None:
        self.consumed = 0
        self.oversized = 0
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """Return the lines that `chunk` completed, without newlines, each with its byte offset."""
        lines = []
        start = 0
        while (end := chunk.find(b"\n", start)) >= 0:
            self._keep(chunk[start:end])
            if self._size > self._max_bytes:
                self.oversized += 1
            else:
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
