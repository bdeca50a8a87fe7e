"""Read the files and databases of transcripts, with bounded memory and without writing to them."""

import contextlib
import os
import shutil
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import TypeVar

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import check_database, check_regular, open_stream, read_bounded
from agent_relay.transcripts.lenient_json import LINE_BYTES

TYPE_CHECKING = False

if TYPE_CHECKING:
    from agent_relay.transcripts.fact_reading import Tables, TranscriptSource

# Above this nothing is read: it is no session, and would not fit into memory as facts.
MAX_BYTES = 2 << 30


def iterate_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of `path` up to the size it has now; it may grow meanwhile.

    A line longer than readers take is cut to just above that size, so that it is counted as skipped.
    Raises RelayError if the file cannot be read.
    """
    try:
        with open_stream(path) as file:
            left = _check_size(os.fstat(file.fileno()).st_size, path)
            while left > 0:
                line = file.readline(min(left, LINE_BYTES + 1))
                if not line:
                    return
                left -= len(line)
                yield line
                while left > 0 and len(line) > LINE_BYTES and not line.endswith(b"\n"):
                    line = file.readline(min(left, LINE_BYTES + 1))
                    left -= len(line)
                    if not line:
                        return
    except OSError as error:
        raise cannot_read(path, error) from error
    except UntrustedDataError as error:
        raise UntrustedDataError(f"cannot read the transcript: {error.sentence}") from error


def _check_size(size_bytes: int, path: str) -> int:
    """Return `size_bytes`; raise UntrustedDataError if it is above `MAX_BYTES`."""
    if size_bytes > MAX_BYTES:
        raise UntrustedDataError(f"{path} is larger than {MAX_BYTES >> 30} GiB")
    return size_bytes


def read_beginning(path: str, *, lines: int, limit_bytes: int) -> list[bytes]:
    """Return the first complete lines of `path`, at most `lines` of them and `limit_bytes` in all."""
    found: list[bytes] = []
    for line in islice(iterate_lines(path), lines):
        limit_bytes -= len(line)
        if limit_bytes < 0:
            break
        found.append(line)
    return found


def read_small(path: str, *, limit_bytes: int) -> bytes | None:
    """Return the bytes of a file; `None` if it is missing, unreadable or larger than `limit_bytes`."""
    try:
        return read_bounded(path, limit_bytes=limit_bytes)
    except (OSError, RelayError):
        return None


def cannot_read(path: str, error: OSError) -> RelayError:
    """Build the error for a transcript that cannot be opened."""
    return RelayError(f"cannot read the transcript {path}: {error.strerror}")


_TRIES = 5
_PAUSE_S = 0.1
# A file system's clock is coarse: what was written just now may be written again and look the same.
_COARSE_NS = 50_000_000
_LOG_HEADER_BYTES = 32

_WRITTEN = 3
"""The index of the last write's time in a mark."""

_State = tuple[tuple[int, ...], tuple[int, ...], bytes]


def copy_database(path: str, copy: str, *, copy_file: Callable[[str, str], object] = shutil.copyfile) -> None:
    """Copy the database `path` to `copy`, as a crash would leave it: opening it for writing recovers it.

    Neither the database nor its rollback journal was written to meanwhile, and its write-ahead log was not
    restarted; that log may grow, and SQLite leaves out what is incomplete at its end. Sources:
    sqlite.org/atomiccommit.html, sqlite.org/walformat.html. Raises RelayError if it is written to all the
    time, OSError if it cannot be copied.
    """
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE_S)
        now_ns, before = time.time_ns(), _look_at(path)
        if any(0 <= now_ns - mark[_WRITTEN] < _COARSE_NS for mark in before[:2] if mark):
            continue
        check_regular(path)
        copy_file(path, copy)
        for ending in ("-journal", "-wal"):
            check_regular(path + ending, may_miss=True)
            _copy_beside(path + ending, copy + ending, copy_file)
        if before == _look_at(path):
            return
    raise RelayError(f"cannot read sessions from {path}: it is being written to", hint="Try again.")


def _copy_beside(path: str, copy: str, copy_file: Callable[[str, str], object]) -> None:
    """Copy a file beside the database; if there is none, remove the one beside the copy."""
    try:
        copy_file(path, copy)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)


def _look_at(path: str) -> _State:
    """Return a state that changes with every write that would tear a copy."""
    log = b""
    with contextlib.suppress(FileNotFoundError), open_stream(f"{path}-wal") as file:
        log = file.read(_LOG_HEADER_BYTES)
    return _mark(path), _mark(f"{path}-journal"), log


def _mark(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


Answer = TypeVar("Answer")

_DATABASE_MARK = b"SQLite format 3\x00"
# A database that can only be opened by copying it is copied up to this size.
_COPY_BYTES = 512 << 20
_BUSY_S = 2.0
# What a copy that is ours can help with: sqlite.org/rescode.html.
_UNREACHED = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
)
_PRIMARY = 0xFF
# Tables may be views, and views without an end.
_QUERY_S = 20.0
_STEPS = 100_000
_VALUE_BYTES = 64 << 20
_ANSWER_BYTES = 512 << 20


def is_database(path: str) -> bool:
    """Check whether `path` is a SQLite database."""
    try:
        with open_stream(path) as file:
            return file.read(len(_DATABASE_MARK)) == _DATABASE_MARK
    except OSError as error:
        raise cannot_read(path, error) from error


def read_tables(path: str, tables: "Tables", native_id: str) -> "TranscriptSource":
    """Read the session `native_id` of the database `path`, or the newest one if `native_id` is empty.

    Raises RelayError if there is no such session, UntrustedDataError if it is no such database.
    """
    from agent_relay.transcripts.fact_reading import TranscriptSource

    def read(database: sqlite3.Connection) -> TranscriptSource | None:
        wanted = native_id
        if not wanted:
            newest = _fetch(database, tables.newest)
            wanted = str(newest[0][tables.columns["native_id"]]) if newest else ""
        sessions = _fetch(database, tables.session, wanted)
        if not sessions:
            return None
        return TranscriptSource(
            place=path,
            native_id=wanted,
            session=sessions[0],
            messages=tuple(_fetch(database, tables.messages, wanted)),
            parts=tuple(_fetch(database, tables.parts, wanted)),
            todos=tuple(_fetch(database, tables.todos, wanted)),
        )

    source = query_database(path, read)
    if source is None:
        raise RelayError(f"there is no session {native_id or 'at all'} in {path}")
    return source


def read_later_rows(path: str, tables: "Tables", native_id: str, *, after: str) -> "TranscriptSource":
    """Read the newest messages of the session `native_id`: from `after` on, and that one once more.

    Of very many rows the first ones are left out. Raises RelayError as `read_tables` does.
    """
    from agent_relay.transcripts.fact_reading import TranscriptSource

    def read(database: sqlite3.Connection) -> TranscriptSource:
        messages = _fetch_last(database, tables.later_messages, native_id, after)
        first = str(messages[0].get("id") or "") if messages else after
        return TranscriptSource(
            place=path,
            native_id=native_id,
            session=next(iter(_fetch(database, tables.session, native_id)), None),
            messages=tuple(messages),
            parts=tuple(_fetch_last(database, tables.later_parts, native_id, first)),
            todos=tuple(_fetch(database, tables.todos, native_id)),
        )

    return query_database(path, read)


def list_rows(path: str, tables: "Tables") -> list[Mapping[str, object]]:
    """List the newest sessions of the database `path`, newest first."""
    return query_database(path, lambda database: _fetch(database, tables.newest))


def query_database(path: str, read: Callable[[sqlite3.Connection], Answer]) -> Answer:
    """Call `read` with a read-only connection, and return its result.

    Reading a database in WAL mode needs its shared-memory file, which cannot be created in a folder we may
    not write to; then a private copy is read.
    """
    try:
        with closing(_connect(path, "ro")) as database:
            return read(database)
    except sqlite3.OperationalError as error:
        # Some errors are sqlite3's own, not SQLite's, and have no code.
        if getattr(error, "sqlite_errorcode", 0) & _PRIMARY not in _UNREACHED:
            raise _cannot_query(path, error) from error
        why = error
    except OSError as error:
        raise cannot_read(path, error) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _cannot_query(path, error) from error
    import tempfile

    try:
        if os.path.getsize(path) > _COPY_BYTES:
            raise _cannot_query(path, why)
        with tempfile.TemporaryDirectory(prefix="agent-relay-") as folder:
            copy = os.path.join(folder, "copy.db")
            copy_database(path, copy)
            # What a writer had not completed is undone there, which writes.
            with closing(_connect(copy, "rw")) as database:
                return read(database)
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise _cannot_query(path, error) from error
    except OSError as error:
        raise cannot_read(path, error) from error


def _connect(path: str, mode: str) -> sqlite3.Connection:
    from urllib.parse import quote

    check_database(path)
    database = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode={mode}", uri=True, timeout=_BUSY_S)
    database.row_factory = sqlite3.Row
    database.text_factory = _decode
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _VALUE_BYTES)
    deadline = time.monotonic() + _QUERY_S
    database.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        # Opening is lazy: the first statement is what fails.
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()
    except (sqlite3.Error, UnicodeDecodeError):
        database.close()
        raise
    return database


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _fetch(database: sqlite3.Connection, query: str, *values: str) -> list[Mapping[str, object]]:
    found, size = list[Mapping[str, object]](), 0
    for row in database.execute(query, values):
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if size > _ANSWER_BYTES:
            raise UntrustedDataError(f"a session's rows have more than {_ANSWER_BYTES >> 20} MiB")
        found.append(dict(row))
    return found


_LATER_BYTES = 4 << 20


def _fetch_last(database: sqlite3.Connection, query: str, *values: str) -> list[Mapping[str, object]]:
    """Return the last rows of an answer, of some megabytes at most."""
    found, size = deque[Mapping[str, object]](), 0
    for row in database.execute(query, values):
        found.append(dict(row))
        size += _measure(found[-1])
        while size > _LATER_BYTES and len(found) > 1:
            size -= _measure(found.popleft())
    return list(found)


def _measure(row: Mapping[str, object]) -> int:
    return sum(len(value) for value in row.values() if isinstance(value, str | bytes))


def _cannot_query(path: str, error: sqlite3.Error | UnicodeDecodeError) -> UntrustedDataError:
    # sqlite3 fails to decode its own sentence about a damaged database if that quotes a name from it.
    why = "it is damaged" if isinstance(error, UnicodeDecodeError) else error
    return UntrustedDataError(f"cannot read sessions from {path}: {why}")
