"""Remember what has been read of usage so far, in a SQLite file that may be deleted at any time."""

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator

import msgspec

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import check_database
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import take_lock
from agent_relay.transcripts.usage_records import ReaderState, UsageRecord
from agent_relay.usage.record_files import Found

VERSION = 6
"""Raised whenever a reader or a record changes its meaning: another version's entries are read again."""
_WAIT_S = 20.0
_TABLES = """
CREATE TABLE files(path BLOB PRIMARY KEY, entry BLOB);
CREATE TABLE marks(path BLOB, part INT, data BLOB, PRIMARY KEY(path, part));
"""
_SEAL_BYTES = 4

_marks = msgspec.msgpack.Decoder(list[UsageRecord])


class Entry(msgspec.Struct, frozen=True):
    """Progress in a file: read up to `offset`, in the state `found`; `guard` tells it from another.

    Its records are kept in `parts` pieces.
    """

    found: Found
    reader: str
    offset: int
    guard: bytes
    memory: ReaderState
    parts: int = 0


class _Kept(msgspec.Struct, array_like=True):
    """An entry as it is written, without the file's name, which need not be valid text."""

    state: tuple[int, int, int, tuple[int, ...]]
    reader: str
    offset: int
    guard: bytes
    memory: ReaderState
    parts: int


_kept = msgspec.msgpack.Decoder(_Kept)


class UsageIndex:
    """The open index at `path`; without a database it knows nothing and keeps nothing."""

    def __init__(self, path: str, database: sqlite3.Connection | None) -> None:
        self._path = path
        self._database = database
        self._entries: dict[str, Entry] = {}
        if database is not None:
            for name, data in database.execute("SELECT path, entry FROM files"):
                entry = _parse_entry(name, _unseal(name, 0, data))
                self._entries[entry.found.path] = entry

    def get(self, path: str, reader: str) -> Entry | None:
        """Return what is known of `path` as read by `reader`; `None` for nothing."""
        entry = self._entries.get(path)
        return entry if entry is not None and entry.reader == reader else None

    def read_marks(self, entry: Entry) -> list[UsageRecord]:
        """Return all records kept for its file. Raise sqlite3.Error or msgspec.DecodeError if damaged."""
        if self._database is None:
            return []
        name = os.fsencode(entry.found.path)
        parts = self._database.execute("SELECT part, data FROM marks WHERE path = ? ORDER BY part", (name,))
        pieces = [(part, _unseal(name, part, data)) for part, data in parts]
        if [part for part, _ in pieces] != list(range(1, entry.parts + 1)):
            raise sqlite3.DatabaseError("some marks are missing")
        return [mark for _, piece in pieces for mark in _marks.decode(piece)]

    def put(self, entry: Entry, marks: list[UsageRecord], *, is_new: bool) -> None:
        """Keep `entry`, and `marks` after those kept before, or instead of them if `is_new`."""
        name = os.fsencode(entry.found.path)
        parts = (0 if is_new else entry.parts) + bool(marks)
        with self._writing() as database:
            if database is None:
                return
            if is_new and entry.found.path in self._entries:
                database.execute("DELETE FROM marks WHERE path = ?", (name,))
            kept = _seal(name, 0, _render_entry(entry, parts))
            database.execute("INSERT OR REPLACE INTO files VALUES(?, ?)", (name, kept))
            if marks:
                piece = _seal(name, parts, msgspec.msgpack.encode(marks))
                database.execute("INSERT OR REPLACE INTO marks VALUES(?, ?, ?)", (name, parts, piece))

    def forget_others(self, paths: Iterable[str], reader: str) -> None:
        """Remove all files of this reader except `paths`: the others are gone."""
        wanted = set(paths)
        gone = [
            (os.fsencode(path),)
            for path, entry in self._entries.items()
            if entry.reader == reader and path not in wanted
        ]
        with self._writing() as database:
            if database is not None:
                database.executemany("DELETE FROM files WHERE path = ?", gone)
                database.executemany("DELETE FROM marks WHERE path = ?", gone)

    def close(self) -> None:
        """Save what was put; after a failure nothing is saved, so that the next process begins anew."""
        with self._writing() as database:
            if database is not None:
                database.commit()
        if self._database is not None:
            self._database.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection | None]:
        """Yield the database; delete it after the first error: it is damaged, or the disk is full."""
        try:
            yield self._database
        except sqlite3.Error as error:
            _warn("usage-index-given-up why=%s", error)
            if self._database is not None:
                self._database.close()
            self._database = None
            self._entries.clear()
            _remove(self._path)


def _render_entry(entry: Entry, parts: int) -> bytes:
    found = entry.found
    state = found.device, found.inode, found.size, found.changed
    return msgspec.msgpack.encode(_Kept(state, entry.reader, entry.offset, entry.guard, entry.memory, parts))


def _parse_entry(name: bytes, data: bytes) -> Entry:
    """Parse an entry; raise msgspec.DecodeError if it is damaged."""
    kept = _kept.decode(data)
    return Entry(
        Found(os.fsdecode(name), *kept.state), kept.reader, kept.offset, kept.guard, kept.memory, kept.parts
    )


def _seal(name: bytes, part: int, data: bytes) -> bytes:
    """Prefix the data with a check sum of it and its place: damaged figures must not be believed."""
    return zlib.crc32(b"%b\0%d\0%b" % (name, part, data)).to_bytes(_SEAL_BYTES) + data


def _unseal(name: object, part: object, sealed: object) -> bytes:
    """Return the data sealed for this place; raise sqlite3.DatabaseError if it was changed."""
    if isinstance(name, bytes) and isinstance(part, int) and isinstance(sealed, bytes):
        data = sealed[_SEAL_BYTES:]
        if _seal(name, part, data) == sealed:
            return data
    raise sqlite3.DatabaseError("not what was written")


@contextlib.contextmanager
def open_index(path: str) -> Iterator[UsageIndex]:
    """Yield the index at `path`, locked by this process until the end; then save what was put.

    If it cannot be opened, or another process keeps it for too long, the index yielded knows nothing.
    """
    with contextlib.ExitStack() as stack:
        try:
            ensure_private(os.path.dirname(path))
            lock = take_lock(f"{path}.lock", limit_s=_WAIT_S)
            if lock is None:
                raise TimeoutError
            stack.callback(os.close, lock)
            _remove_reports(os.path.dirname(path))
            index = _load(path)
        except (RelayError, OSError, sqlite3.Error) as error:
            _warn("usage-index-unused why=%s", error)
            index = UsageIndex(path, None)
        stack.callback(index.close)
        yield index


def _load(path: str) -> UsageIndex:
    """Load the index at `path`; make it anew if it is damaged."""
    database = None
    try:
        database = _connect(path)
        return UsageIndex(path, database)
    except (sqlite3.Error, msgspec.DecodeError, UntrustedDataError) as error:
        _warn("usage-index-rebuilt why=%s", error)
        if database is not None:
            database.close()
        _remove(path)
        return UsageIndex(path, _connect(path))


def _warn(event: str, error: Exception) -> None:
    """Log a warning; logging is imported only then."""
    import logging

    logging.getLogger(__name__).warning(event, type(error).__name__)


def _remove_reports(cache: str) -> None:
    """Remove the reports that versions before this index kept in the cache, a folder of JSON files."""
    folder = os.path.join(cache, "reports")
    with contextlib.suppress(OSError):
        names = [] if os.path.islink(folder) else os.listdir(folder)
        for name in names:
            if name.endswith(".json"):
                os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _remove(path: str) -> None:
    for name in (path, f"{path}-journal", f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(OSError):
            os.unlink(name)


def _connect(path: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    check_database(path)
    database = sqlite3.connect(path, timeout=_WAIT_S)
    try:
        # What a failing machine leaves half written is seen by its check sums, and read again.
        database.execute("PRAGMA synchronous = OFF")
        # Marks of a file take some KB: in pages of 4 KB nearly all of them would be cut into several.
        database.execute("PRAGMA page_size = 65536")
        (version,) = database.execute("PRAGMA user_version").fetchone()
        if version != VERSION:
            for name in ("files", "marks"):
                database.execute(f"DROP TABLE IF EXISTS {name}")
            database.executescript(f"{_TABLES} PRAGMA user_version = {VERSION};")
        database.execute("SELECT path FROM files LIMIT 1").fetchall()
    except sqlite3.Error:
        database.close()
        raise
    return database
