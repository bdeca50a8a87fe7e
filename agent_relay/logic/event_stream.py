"""The events of a server's event stream, at any chunking."""

from agent_relay.logic.json_text import MAX_RECORD_BYTES, Data, Framed, parse_object
from agent_relay.logic.line_splitter import Lines


class EventStream:
    """`sse`: the JSON objects in the `data:` lines of a server's event stream.

    Only the data counts: event names, ids, retry times and comments are passed over (WHATWG HTML,
    "Server-sent events"). Lines end in LF, CR LF or CR.
    """

    is_waiting = False

    def __init__(self, max_bytes: int = MAX_RECORD_BYTES) -> None:
        self._lines = Lines(max_bytes)
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
        """Events given up."""
        return self._broken + self._lines.oversized

    def frame(self, chunk: bytes) -> list[Framed]:
        """The events whose closing blank line `chunk` brought."""
        records: list[Framed] = []
        for at, line in self._lines.split(self._unify(chunk)):
            if not line:
                records += self._dispatch()
            elif line.startswith(b"data:"):
                self._take(at, line[5:].removeprefix(b" "))
        return records

    def flush(self) -> list[Framed]:
        """Nothing: an event without its blank line is incomplete and is discarded with its stream."""
        return []

    def feed(self, chunk: bytes) -> list[Data]:
        """The records completed by `chunk`."""
        return [data for _, data in self.frame(chunk)]

    def _unify(self, chunk: bytes) -> bytes:
        """The chunk with every line end as one newline; a CR LF may be cut in two."""
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
