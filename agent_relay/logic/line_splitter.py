"""Lines out of a byte stream, in bounded memory."""


class Lines:
    """Lines ended by a newline, with where they start; lines over the limit are dropped as they pass."""

    def __init__(self, max_bytes: int) -> None:
        self.consumed = 0
        self.oversized = 0
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._size = 0

    def split(self, chunk: bytes) -> list[tuple[int, bytes]]:
        """The lines `chunk` completed, without their newlines, each with the byte it starts at."""
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
