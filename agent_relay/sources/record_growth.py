"""Read what an agent has added to its own record since it was last read; tell whether the rest is intact."""

import contextlib
import io
import os
import zlib

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import Facts, RecordCursor, TodoItem
from agent_relay.domain.values import replace
from agent_relay.packet.extract.quotable import trim_facts
from agent_relay.sources import transcript_files as files
from agent_relay.sources.transcript_reader import find_ancestors, get_reader
from agent_relay.system.disk.files import open_regular
from agent_relay.transcripts.fact_reading import Ancestor, TranscriptReader, TranscriptSource

MOST_BYTES = 4 << 20
"""The most that is read of a file at once: of more, only the end. It is read within some 0.1 s."""
_SEALED_BYTES = 256


class RecordGrowth(msgspec.Struct, frozen=True):
    """What was added: its facts, numbered from turn 1, and the cursor after it.

    `is_from_start` is whether nothing had been read of this record before, or it has become another one.
    """

    facts: Facts
    cursor: RecordCursor
    is_from_start: bool


def read_growth(
    reader: str,
    path: str,
    before: RecordCursor | None,
    *,
    native_id: str = "",
    agent: str = "",
    plan: tuple[TodoItem, ...] = (),
) -> RecordGrowth | None:
    """Read the facts that the record at `path` gained since `before`; `None` if it gained nothing.

    `plan` is what was planned until then. The time this takes depends on what is new, not on the record's
    size. Raises RelayError if it cannot be read, ConfigurationError for an unknown reader.
    """
    known = get_reader(reader)
    same = before if before is not None and before.path == path else None
    if known.tables is not None:
        grown = _read_rows(known, path, same, native_id)
    else:
        grown = _read_lines(known, path, same, native_id, plan)
    if grown is None:
        return None
    facts = trim_facts(grown.facts)
    return replace(grown, facts=replace(facts, agent=agent) if agent else facts)


def look_at_record(path: str) -> tuple[int, ...]:
    """Return what changes whenever the record at `path` does; empty if there is none."""
    marks: list[int] = []
    for name in (path, f"{path}-wal"):
        with contextlib.suppress(OSError, ValueError):
            found = os.stat(name)
            marks += (found.st_ino, found.st_size, found.st_mtime_ns)
    return tuple(marks)


def is_intact(reader: str, cursor: RecordCursor, path: str, *, native_id: str = "") -> bool:
    """Tell whether the record at `path` still holds what had been read up to the cursor.

    What an agent took back itself, by going on from an earlier prompt, is no damage: its record only grows.
    """
    known = get_reader(reader)
    try:
        if known.tables is not None:
            return bool(cursor.oldest) and _find_oldest(known, path, native_id) == cursor.oldest
        handle = open_regular(path)
        try:
            return _is_sealed(handle, cursor)
        finally:
            os.close(handle)
    except (OSError, RelayError):
        return False


def _is_sealed(handle: int, cursor: RecordCursor) -> bool:
    is_long_enough = os.fstat(handle).st_size >= cursor.offset
    return is_long_enough and _seal(handle, cursor.offset) == cursor.seal


def _seal(handle: int, offset: int) -> str:
    """Return a check sum of the first and last bytes before `offset`: another file differs in one of them."""
    size = min(offset, _SEALED_BYTES)
    data = os.pread(handle, size, 0) + os.pread(handle, size, offset - size)
    return f"{zlib.crc32(data):08x}"


def _read_lines(
    reader: TranscriptReader,
    path: str,
    before: RecordCursor | None,
    native_id: str,
    plan: tuple[TodoItem, ...],
) -> RecordGrowth | None:
    try:
        handle = open_regular(path)
        try:
            same = before if before is not None and _is_sealed(handle, before) else None
            data, begin = _read_whole_lines(handle, same.offset if same is not None else 0)
            end = begin + len(data)
            seal = _seal(handle, end)
        finally:
            os.close(handle)
    except OSError as error:
        raise files.cannot_read(path, error) from error
    if not data:
        return None
    source = TranscriptSource(
        place=path,
        native_id=native_id,
        lines=io.BytesIO(data),
        ancestors=_list_ancestors(reader, path) if not begin else (),
        plan=plan if same is not None else (),
        is_part=begin > 0,
    )
    facts = reader.read(source)
    lines = (same.lines if same is not None else 0) + facts.lines
    return RecordGrowth(facts, RecordCursor(path, end, seal, lines=lines), same is None)


def _list_ancestors(reader: TranscriptReader, path: str) -> tuple[Ancestor, ...]:
    """List the records that this one was forked from, unless they are too long to be read once more."""
    found = find_ancestors(reader, path)
    return tuple(found) if sum(os.path.getsize(one.place) for one in found) <= MOST_BYTES else ()


def _read_whole_lines(handle: int, offset: int) -> tuple[bytes, int]:
    """Return the whole lines after `offset`, and where they begin: of very many, only the last ones."""
    size = os.fstat(handle).st_size
    begin = max(offset, size - MOST_BYTES)
    parts: list[bytes] = []
    at = begin
    while at < size and (part := os.pread(handle, min(1 << 20, size - at), at)):
        parts.append(part)
        at += len(part)
    data = b"".join(parts)
    if begin > offset:
        _, _, data = data.partition(b"\n")
        begin = at - len(data)
    return data[: data.rfind(b"\n") + 1], begin


def _read_rows(
    reader: TranscriptReader, path: str, before: RecordCursor | None, native_id: str
) -> RecordGrowth | None:
    tables = reader.tables
    assert tables is not None  # noqa: S101 - asked by the caller
    oldest = _find_oldest(reader, path, native_id)
    same = before if before is not None and oldest and before.oldest == oldest else None
    if not oldest:
        return None
    source = files.read_later_rows(path, tables, native_id, after=same.newest if same is not None else "")
    if same is not None and _seal_row(source, same.newest) == same.seal:
        source = _leave_out(source, same.newest)
    if not source.messages:
        return None
    newest = str(source.messages[-1].get("id") or "")
    facts = reader.read(source)
    lines = (same.lines if same is not None else 0) + facts.lines
    cursor = RecordCursor(path, seal=_seal_row(source, newest), oldest=oldest, newest=newest, lines=lines)
    return RecordGrowth(facts, cursor, same is None)


def _find_oldest(reader: TranscriptReader, path: str, native_id: str) -> str:
    """Return the id of the conversation's first message; empty if there is none."""
    tables = reader.tables
    if tables is None or not native_id:
        return ""
    rows = files.query_database(
        path, lambda database: database.execute(tables.oldest, (native_id,)).fetchall()
    )
    return str(rows[0]["id"] or "") if rows else ""


def _seal_row(source: TranscriptSource, message: str) -> str:
    """Return a check sum of a message and its parts, which may have been read before they were complete."""
    own = [one for one in source.messages if one.get("id") == message]
    parts = [part for part in source.parts if part.get("message_id") == message]
    seal = 0
    for row in (*own, *parts):
        seal = zlib.crc32(str(row.get("data")).encode("utf-8", "replace"), seal)
    return f"{seal:08x}"


def _leave_out(source: TranscriptSource, message: str) -> TranscriptSource:
    return replace(
        source,
        messages=tuple(one for one in source.messages if one.get("id") != message),
        parts=tuple(part for part in source.parts if part.get("message_id") != message),
    )
