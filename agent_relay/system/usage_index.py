"""The index of what has been read of usage so far: a cache, which may be deleted at any time.

One SQLite file, used by one process at a time. What it cannot be trusted with is read again; where it cannot
be kept at all, everything is read anew and nothing is lost but time.
"""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import filelock
import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.system.folders import ensure_private
from agent_relay.system.usage_files import Found

VERSION = 2
"""Counted up whenever a reader or a mark changes its meaning: another version's entries are read again."""
_WAIT_S = 20.0
_TABLES = """
CREATE TABLE files(
  path TEXT PRIMARY KEY, reader TEXT, device INT, inode INT, size INT, changed_ns INT,
  offset INT, guard BLOB, memory BLOB);
CREATE TABLE marks(path TEXT, part INT, data BLOB, PRIMARY KEY(path, part));
"""
_ALL = "SELECT path, reader, device, inode, size, changed_ns, offset, guard, memory FROM files"

_log = logging.getLogger(__name__)
_marks = msgspec.msgpack.Decoder(list[Mark])
_memories = msgspec.msgpack.Decoder(Memory)


@dataclass(frozen=True, slots=True)
class Entry:
    """How far a file has been read: up to `offset`, in the state `found`; `guard` tells it from another."""

    found: Found
    reader: str
    offset: int
    guard: bytes
    memory: Memory


class UsageIndex:
    """The index at `path`, open; without a database it knows nothing and keeps nothing."""

    def __init__(self, path: str, database: sqlite3.Connection | None) -> None:
        self._path = path
        self._database = database
        self._entries: dict[str, Entry] = {}
        if database is not None:
            for name, reader, device, inode, size, changed_ns, offset, guard, memory in database.execute(
                _ALL
            ):
                found = Found(name, device, inode, size, changed_ns)
                self._entries[name] = Entry(found, reader, offset, guard, _memories.decode(memory))

    def get(self, path: str, reader: str) -> Entry | None:
        """What is known of `path` as `reader` understands it."""
        entry = self._entries.get(path)
        return entry if entry is not None and entry.reader == reader else None

    def read_marks(self, path: str) -> list[Mark]:
        """The marks kept for `path`. Raises sqlite3.Error and msgspec.DecodeError."""
        if self._database is None:
            return []
        parts = self._database.execute("SELECT data FROM marks WHERE path = ? ORDER BY part", (path,))
        return [mark for (data,) in parts for mark in _marks.decode(data)]

    def put(self, entry: Entry, marks: list[Mark], *, is_new: bool) -> None:
        """Keep `entry`, and `marks` behind those kept before, or instead of them where `is_new`."""
        found = entry.found
        with self._writing() as database:
            if database is None:
                return
            if is_new:
                database.execute("DELETE FROM marks WHERE path = ?", (found.path,))
            database.execute(
                "INSERT OR REPLACE INTO files VALUES(?,?,?,?,?,?,?,?,?)",
                (
                    *(found.path, entry.reader, found.device, found.inode, found.size, found.changed_ns),
                    *(entry.offset, entry.guard, msgspec.msgpack.encode(entry.memory)),
                ),
            )
            if marks:
                database.execute(
                    "INSERT INTO marks SELECT ?, COALESCE(MAX(part), 0) + 1, ? FROM marks WHERE path = ?",
                    (found.path, msgspec.msgpack.encode(marks), found.path),
                )

    def forget_others(self, paths: Iterable[str], reader: str) -> None:
        """Nothing is kept of this reader's files but of `paths`: the others are gone."""
        wanted = set(paths)
        gone = [
            (path,) for path, entry in self._entries.items() if entry.reader == reader and path not in wanted
        ]
        with self._writing() as database:
            if database is not None:
                database.executemany("DELETE FROM files WHERE path = ?", gone)
                database.executemany("DELETE FROM marks WHERE path = ?", gone)

    def close(self) -> None:
        """What was put is kept; where that failed, nothing is, so that the next one begins anew."""
        with self._writing() as database:
            if database is not None:
                database.commit()
        if self._database is not None:
            self._database.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection | None]:
        """The database, given up with the first thing it refuses: it is damaged, or the disk is full."""
        try:
            yield self._database
        except sqlite3.Error as error:
            _log.warning("usage-index-given-up why=%s", type(error).__name__)
            if self._database is not None:
                self._database.close()
            self._database = None
            self._entries.clear()
            _remove(self._path)


@contextlib.contextmanager
def open_index(path: str) -> Iterator[UsageIndex]:
    """The index at `path`, this process's alone until the end; what was put is then kept.

    Where it cannot be opened, or another process keeps it for too long, the one that is given knows nothing.
    """
    with contextlib.ExitStack() as stack:
        try:
            ensure_private(os.path.dirname(path))
            stack.enter_context(filelock.FileLock(f"{path}.lock", timeout=_WAIT_S, mode=0o600))
            index = _load(path)
        except (RelayError, OSError, sqlite3.Error, filelock.Timeout) as error:
            _log.warning("usage-index-unused why=%s", type(error).__name__)
            index = UsageIndex(path, None)
        stack.callback(index.close)
        yield index


def _load(path: str) -> UsageIndex:
    """The index at `path`, made anew where it is damaged."""
    database = None
    try:
        database = _connect(path)
        return UsageIndex(path, database)
    except (sqlite3.Error, msgspec.DecodeError) as error:
        _log.warning("usage-index-rebuilt why=%s", type(error).__name__)
        if database is not None:
            database.close()
        _remove(path)
        return UsageIndex(path, _connect(path))


def _remove(path: str) -> None:
    for name in (path, f"{path}-journal", f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(OSError):
            os.unlink(name)


def _connect(path: str) -> sqlite3.Connection:
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    database = sqlite3.connect(path, timeout=_WAIT_S)
    try:
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
