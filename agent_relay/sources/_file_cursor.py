"""Read one file of records as it grows: every record once, whatever happens to the file.

The disk space of what was read is released in files that belong to the leg alone: an idle agent's telemetry
grows by megabytes an hour in a folder that is often memory.
"""

import ctypes
import os
import stat
import zlib
from collections.abc import Mapping, Sequence

from agent_relay.sources.record_framing import MAX_RECORD_BYTES, Framed, Framing, build_framer, parse_object
from agent_relay.system.disk.files import find_regular

STEP_BYTES = 1 << 20
KEPT_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h
_LOOK_BYTES = 1 << 16


class SpaceReleaser:
    """Frees one file in steps, up to the start of a record: what is left begins with a complete one.

    The newest `KEPT_BYTES` stay, because they identify the file. Offsets do not change.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._starts: list[int] = [0]
        self._freed = 0
        self._can = True

    def free(self, records: Sequence[Framed], *, boundary: int, inode: int) -> None:
        """Release the space of `records`, which were read up to `boundary`.

        Nothing happens if the file system cannot do it.
        """
        self._starts += [at for at, _ in records]
        last = max((at for at in self._starts if at <= boundary - KEPT_BYTES), default=0)
        self._starts = [at for at in self._starts if at >= last]
        if self._can and last - self._freed >= STEP_BYTES:
            self._can = free_range(self._path, inode, start=self._freed, end=last)
            self._freed = last

    def restart(self) -> None:
        """Start over: there is another file at the path."""
        self._starts, self._freed = [0], 0


def free_range(path: str, inode: int, *, start: int, end: int) -> bool:
    """Turn the bytes from `start` to `end` of our own regular file into a hole; return whether it worked.

    Its size does not change. False for a file of other names, owners or inode, and if the file system cannot.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        is_ours = found.st_uid == os.geteuid() and found.st_nlink == 1 and found.st_ino == inode
        if not (stat.S_ISREG(found.st_mode) and is_ours):
            return False
        library = ctypes.CDLL(None)
        punch = getattr(library, "fallocate64", None) or library.fallocate
        punch.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        return bool(punch(file, _KEEP_SIZE | _PUNCH_HOLE, start, end - start) == 0)
    except (OSError, AttributeError):
        return False
    finally:
        os.close(file)


def find_data_start(file: int) -> int:
    """Find where the file's text begins: after what was freed, which reads as zeros."""
    try:
        at = os.lseek(file, 0, os.SEEK_DATA)
    except OSError:
        return 0
    while chunk := os.pread(file, _LOOK_BYTES, at):
        rest = chunk.lstrip(b"\0")
        if rest:
            return at + len(chunk) - len(rest)
        at += len(chunk)
    return at


CHUNK_BYTES = 256 * 1024
MAX_CHUNKS = 4
MAX_UNREAD_BYTES = 2 << 30
_SEAL_BYTES = 64

CursorState = dict[str, int]


class TailCursor:
    """A place in a file that grows. After a look, `has_more` is whether bytes are left.

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
        """True if complete lines were read that belong to a record still open."""
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


Cursor = TailCursor | DocumentCursor


def _number(kept: Mapping[str, object] | None, name: str, otherwise: int) -> int:
    value = (kept or {}).get(name)
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else otherwise
