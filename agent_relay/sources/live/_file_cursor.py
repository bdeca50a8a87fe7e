"""Read one file of records as it grows: every record once, whatever happens to the file."""

import os
import zlib
from collections.abc import Mapping
from typing import Protocol

from agent_relay.sources._record_framing import Framing, build_framer
from agent_relay.sources.live._space_release import SpaceReleaser, find_data_start
from agent_relay.system.disk.regular_files import find_regular
from agent_relay.transcripts.stream_parser import MAX_RECORD_BYTES, Framed, parse_object

CHUNK_BYTES = 256 * 1024
MAX_CHUNKS = 4
MAX_UNREAD_BYTES = 2 << 30
_SEAL_BYTES = 64

CursorState = dict[str, int]


class Cursor(Protocol):
    """A place in one file. After a look, `has_more` is whether bytes are left, `is_waiting` an open entry."""

    has_more: bool

    @property
    def is_waiting(self) -> bool:
        """Whether there is a record whose end is not certain yet."""
        ...

    def look(self) -> list[Framed]:
        """Return the records that came since the last look, each with the byte it starts at."""
        ...

    def flush(self) -> list[Framed]:
        """Return the record whose end was not certain, as the file has been quiet."""
        ...

    def keep(self) -> CursorState:
        """Return plain numbers with which a cursor continues after a restart; nothing is lost or repeated."""
        ...


class TailCursor:
    """A place in a file that grows.

    A file that is replaced, cut short or rewritten (shown by its inode, its size or the bytes before the
    place) is read from its start. A deleted file is waited for. With `frees`, the disk space of what was read
    is released now and then; such a file is read from where it still has text.
    """

    def __init__(
        self,
        path: str,
        framing: Framing,
        *,
        start: int = 0,
        kept: Mapping[str, object] | None = None,
        frees: bool = False,
    ) -> None:
        self.has_more = False
        self._path = path
        self._framing: Framing = framing
        self._freer = SpaceReleaser(path) if frees else None
        self._inode = _number(kept, "inode", 0)
        self._known = (-1, -1)
        self._restart(_number(kept, "offset", start))
        self._seal = (min(_number(kept, "seal_bytes", 0), _SEAL_BYTES), _number(kept, "seal", 0))
        self._kept_seal = self._seal

    def _restart(self, offset: int) -> None:
        self._base = self._read_to = offset
        self._framer = build_framer(self._framing)
        self._seal = self._kept_seal = (0, 0)

    @property
    def _boundary(self) -> int:
        return self._base + self._framer.boundary

    @property
    def is_waiting(self) -> bool:
        """Whether complete lines were read that belong to a record still open."""
        return self._framer.is_waiting

    def look(self) -> list[Framed]:
        """Return the records that came since the last look; at most a mebibyte's worth."""
        had_more, self.has_more = self.has_more, False
        file = find_regular(self._path)
        if file is None:
            return []
        try:
            return self._look(file, had_more=had_more)
        except OSError:
            self._known = (-1, -1)
            return []
        finally:
            os.close(file)

    def _look(self, file: int, *, had_more: bool) -> list[Framed]:
        found = os.fstat(file)
        now = (found.st_size, found.st_mtime_ns)
        if found.st_ino == self._inode and now == self._known and not had_more:
            return []
        records: list[Framed] = []
        if self._is_other(file, found):
            records += self.flush()
            self._restart(0)
        if self._freer is not None and not self._read_to:
            self._freer.restart()
            self._restart(find_data_start(file))
        self._inode, self._known = found.st_ino, now
        if found.st_size - self._read_to > MAX_UNREAD_BYTES:
            # No agent writes so much between two looks: what claims to be so large would be read for ever.
            self._restart(found.st_size)
        for _ in range(MAX_CHUNKS):
            chunk = os.pread(file, CHUNK_BYTES, self._read_to)
            self._read_to += len(chunk)
            records += self._absolute(self._framer.frame(chunk))
            self.has_more = len(chunk) == CHUNK_BYTES
            if not self.has_more:
                break
        self._seal = _read_seal(file, self._read_to)
        self._kept_seal = _read_seal(file, self._boundary)
        if self._freer is not None:
            self._freer.free(records, boundary=self._boundary, inode=self._inode)
        return records

    def _is_other(self, file: int, found: os.stat_result) -> bool:
        if not self._inode:
            return found.st_size < self._read_to
        if found.st_ino != self._inode or found.st_size < self._read_to:
            return True
        size, checksum = self._seal
        return zlib.crc32(os.pread(file, size, max(self._read_to - size, 0))) != checksum

    def _absolute(self, records: list[Framed]) -> list[Framed]:
        return [(self._base + at, data) for at, data in records]

    def flush(self) -> list[Framed]:
        """Return the log entry that was still open."""
        records = self._absolute(self._framer.flush())
        file = find_regular(self._path) if records else None
        if file is not None:
            self._kept_seal = _read_seal(file, self._boundary)
            os.close(file)
        return records

    def keep(self) -> CursorState:
        """Return offset, inode and seal."""
        size, checksum = self._kept_seal
        return {"offset": self._boundary, "inode": self._inode, "seal_bytes": size, "seal": checksum}


def _read_seal(file: int, end: int) -> tuple[int, int]:
    """Return size and checksum of the bytes just before `end`: other bytes there mean another file."""
    size = min(_SEAL_BYTES, end)
    return size, zlib.crc32(os.pread(file, size, end - size))


class DocumentCursor:
    """A file that is one JSON object, rewritten as a whole; each different complete one is a record."""

    is_waiting = False

    def __init__(self, path: str, *, kept: Mapping[str, object] | None = None) -> None:
        self.has_more = False
        self._path = path
        self._seen = (_number(kept, "seal_bytes", -1), _number(kept, "seal", 0))

    def look(self) -> list[Framed]:
        """Return the document if it is complete and not the last one seen; a partial one is read again."""
        file = find_regular(self._path)
        if file is None:
            return []
        try:
            text = os.pread(file, MAX_RECORD_BYTES + 1, 0)
        except OSError:
            return []
        finally:
            os.close(file)
        mark = (len(text), zlib.crc32(text))
        data = parse_object(text) if mark != self._seen and len(text) <= MAX_RECORD_BYTES else None
        if data is None:
            return []
        self._seen = mark
        return [(0, data)]

    def flush(self) -> list[Framed]:
        """Return nothing: a document is complete or not a record."""
        return []

    def keep(self) -> CursorState:
        """Return the seal of the last document seen."""
        return {"seal_bytes": self._seen[0], "seal": self._seen[1]}


def _number(kept: Mapping[str, object] | None, name: str, otherwise: int) -> int:
    value = (kept or {}).get(name)
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else otherwise
