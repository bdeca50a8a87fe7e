"""Read the SQLite databases transcripts are kept in, without ever writing to them."""

import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TypeVar

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.sources.transcript_files import cannot_read
from agent_relay.system.disk.regular_files import check_database, open_stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.transcripts.facts.reader_types import Tables, TranscriptSource

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
    from agent_relay.transcripts.facts.reader_types import TranscriptSource

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
        if error.sqlite_errorcode & _PRIMARY not in _UNREACHED:
            raise _cannot_query(path, error) from error
        why = error
    except OSError as error:
        raise cannot_read(path, error) from error
    except sqlite3.Error as error:
        raise _cannot_query(path, error) from error
    import tempfile

    from agent_relay.sources._database_copy import copy_database

    try:
        if os.path.getsize(path) > _COPY_BYTES:
            raise _cannot_query(path, why)
        with tempfile.TemporaryDirectory(prefix="agent-relay-") as folder:
            copy = os.path.join(folder, "copy.db")
            copy_database(path, copy)
            # What a writer had not completed is undone there, which writes.
            with closing(_connect(copy, "rw")) as database:
                return read(database)
    except sqlite3.Error as error:
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
    except sqlite3.Error:
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


def _cannot_query(path: str, error: sqlite3.Error) -> UntrustedDataError:
    return UntrustedDataError(f"cannot read sessions from {path}: {error}")
