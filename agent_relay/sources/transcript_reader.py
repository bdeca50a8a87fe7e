"""Read a session that an agent keeps itself into facts: all of it, or what was added since."""

import contextlib
import glob
import heapq
import io
import json
import os
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.facts import Facts, RecordCursor, TodoItem
from agent_relay.domain.values import replace
from agent_relay.sources import transcript_files as files
from agent_relay.system.disk.files import open_regular
from agent_relay.transcripts import fact_reading as reading

# Files looked into, newest first, before a search gives up; a folder's own session is among the newest.
PEEKED_FILES = 500
_PEEKED_LINES = 60
_PEEKED_BYTES = 16 << 20
_FORK_DEPTH = 16
_SMALL_BYTES = 4 << 20
_EXPORT_BYTES = 256 << 20
_PARENT_LEVELS = 4


def _trim(facts: Facts) -> Facts:
    # It reads the phrases that packets are made with, and most daemons start without a conversation.
    from agent_relay.packet.extract.quotable import trim_facts

    return trim_facts(facts)


def read_facts(reader: str, path: str, *, native_id: str = "", agent: str = "") -> Facts:
    """Read the facts of one native session, which may still be growing.

    `path` is a session's file, a database (then `native_id` chooses, else its newest session), or a
    folder that contains sessions, such as a copied home (then `native_id`, else the newest).
    `agent` replaces the agent's name that the reader finds. Output that no packet quotes is left out.
    Raises RelayError if nothing can be read, ConfigurationError for an unknown reader.
    """
    return _trim(read_whole_facts(reader, path, native_id=native_id, agent=agent))


def read_whole_facts(reader: str, path: str, *, native_id: str = "", agent: str = "") -> Facts:
    """Read facts like `read_facts`, but with the output of every command."""
    known = get_reader(reader)
    if os.path.isdir(path):
        path = _find_in_folder(known, path, native_id)
    facts = known.read(_read_source(known, path, native_id))
    return replace(facts, agent=agent) if agent else facts


def get_reader(name: str) -> reading.TranscriptReader:
    """Return the reader called `name`; raise ConfigurationError for an unknown one."""
    # Most legs begin before there is anything to read.
    from agent_relay.transcripts.fact_readers import READERS

    reader = READERS.get(name)
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise ConfigurationError(f"there is no transcript reader {name}", hint=f"Known are {known}.")
    return reader


def list_newest(paths: list[str], limit: int) -> list[tuple[datetime, str]]:
    """List the newest `limit` files that exist, newest first, each with the time of its last write."""
    dated = []
    for path in paths:
        try:
            dated.append((os.stat(path).st_mtime, path))
        except OSError:
            continue
    return [(datetime.fromtimestamp(at, UTC), path) for at, path in heapq.nlargest(limit, dated)]


def peek_into(reader: reading.TranscriptReader, path: str) -> reading.Peek:
    """Read what the beginning of the file says; raise RelayError if it cannot be read."""
    return reader.peek(files.read_beginning(path, lines=_PEEKED_LINES, limit_bytes=_PEEKED_BYTES))


def read_root_mark(reader: reading.TranscriptReader, path: str) -> str:
    """Return the working folder, if a file beside the sessions' folder names it; else an empty string."""
    if not reader.root_mark:
        return ""
    mark = files.read_small(os.path.join(_beside(path), reader.root_mark), limit_bytes=_SMALL_BYTES)
    return os.fsdecode(mark).strip() if mark else ""


def _beside(path: str) -> str:
    """Return the folder that holds the sessions' folder and the files kept beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    return folder if os.path.basename(path).startswith("logs") else os.path.dirname(folder)


def _find_in_folder(reader: reading.TranscriptReader, folder: str, native_id: str) -> str:
    """Find the file under `folder` that holds the session; raise RelayError if none does."""
    for pattern in reader.patterns:
        found = glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True, include_hidden=True)
        newest = list_newest([path for path in found if os.path.isfile(path)], PEEKED_FILES)
        for _, path in newest:
            if reader.tables is not None or _names_session(reader, path, native_id):
                return path
    raise RelayError(
        f"there is no session {native_id} in {folder}" if native_id else f"there is no session in {folder}",
        hint="Name the session's own file.",
    )


def _names_session(reader: reading.TranscriptReader, path: str, native_id: str) -> bool:
    if reader.prompt_log and os.path.basename(path) == reader.prompt_log:
        return True
    peek = peek_into(reader, path)
    return peek.is_main and (not native_id or peek.native_id == native_id)


def _read_source(reader: reading.TranscriptReader, path: str, native_id: str) -> reading.TranscriptSource:
    if reader.tables is not None:
        if files.is_database(path):
            return files.read_tables(path, reader.tables, native_id)
        return _read_export(reader, path)
    prompts = read_prompts(reader, path)
    is_log = bool(reader.prompt_log) and os.path.basename(path) == reader.prompt_log
    if not os.path.exists(path) and not prompts:
        raise files.cannot_read(path, FileNotFoundError(2, "no such file"))
    if not native_id and prompts and (is_log or not os.path.exists(path)):
        native_id = str(prompts[-1].get("sessionId") or "")
    return reading.TranscriptSource(
        place=path,
        native_id=native_id,
        cwd=read_root_mark(reader, path),
        lines=files.iterate_lines(path) if os.path.exists(path) and not is_log else (),
        ancestors=() if is_log or not os.path.exists(path) else tuple(_find_ancestors(reader, path)),
        prompts=prompts,
    )


def _read_export(reader: reading.TranscriptReader, path: str) -> reading.TranscriptSource:
    data = files.read_small(path, limit_bytes=_EXPORT_BYTES)
    try:
        source = reader.unpack(json.loads(data)) if data and reader.unpack else reading.TranscriptSource()
    except (ValueError, RecursionError):
        source = reading.TranscriptSource()
    if source.session is None:
        raise RelayError(f"{path} holds no session", hint="Name the database or an exported session.")
    return replace(source, place=path)


def read_prompts(reader: reading.TranscriptReader, path: str) -> tuple[Mapping[str, object], ...]:
    """Read the log of prompts that outlives deleted sessions."""
    if not reader.prompt_log:
        return ()
    data = files.read_small(os.path.join(_beside(path), reader.prompt_log), limit_bytes=_SMALL_BYTES)
    try:
        entries = json.loads(data) if data else []
    except (ValueError, RecursionError):
        return ()
    return tuple(entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()


def _find_ancestors(reader: reading.TranscriptReader, path: str) -> list[reading.Ancestor]:
    """Find the sessions that a forked one continues, oldest first; a missing parent ends the list."""
    found: list[reading.Ancestor] = []
    seen = {os.path.abspath(path)}
    fork: reading.ForkPoint | None = peek_into(reader, path).fork
    while fork is not None and len(found) < _FORK_DEPTH:
        parent = _find_parent(path, fork.native_id)
        if parent is None or os.path.abspath(parent) in seen:
            break
        seen.add(os.path.abspath(parent))
        found.insert(0, reading.Ancestor(files.iterate_lines(parent), parent, fork.before))
        fork, path = peek_into(reader, parent).fork, parent
    return found


def _find_parent(path: str, native_id: str) -> str | None:
    """Find the file of the session `native_id`, in the same folder or in folders as deep nearby."""
    folder, below = os.path.dirname(os.path.abspath(path)), ""
    for _ in range(_PARENT_LEVELS):
        name = f"{below}*{glob.escape(native_id)}*{os.path.splitext(path)[1]}"
        matches = sorted(glob.glob(os.path.join(glob.escape(folder), name)))
        if matches:
            return matches[0]
        folder, below = os.path.dirname(folder), f"*/{below}"
    return None


_MOST_GROWTH_BYTES = 4 << 20
"""Most bytes of a file that are read at once: of more, only the end. They are read within some 0.1 s."""
_SEALED_BYTES = 256


class RecordGrowth(msgspec.Struct, frozen=True):
    """The facts added to a record, numbered from turn 1, and the cursor after them.

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
    has_begun = before is not None and bool(before.path)
    if before is not None and (before.is_other or (has_begun and grown.is_from_start)):
        grown = replace(grown, cursor=replace(grown.cursor, is_other=True))
    facts = _trim(grown.facts)
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
    if cursor.is_other:
        return False
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
    return is_long_enough and _sum_up(handle, cursor.offset) == cursor.seal


def _sum_up(handle: int, offset: int) -> str:
    """Return a check sum of the first and last bytes before `offset`: another file differs in one of them."""
    size = min(offset, _SEALED_BYTES)
    data = os.pread(handle, size, 0) + os.pread(handle, size, offset - size)
    return f"{zlib.crc32(data):08x}"


def _read_lines(
    reader: reading.TranscriptReader,
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
            seal = _sum_up(handle, end)
        finally:
            os.close(handle)
    except OSError as error:
        raise files.cannot_read(path, error) from error
    if not data:
        return None
    source = reading.TranscriptSource(
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


def _list_ancestors(reader: reading.TranscriptReader, path: str) -> tuple[reading.Ancestor, ...]:
    """List the records that this one was forked from, unless they are too long to be read once more."""
    found = _find_ancestors(reader, path)
    return tuple(found) if sum(os.path.getsize(one.place) for one in found) <= _MOST_GROWTH_BYTES else ()


def _read_whole_lines(handle: int, offset: int) -> tuple[bytes, int]:
    """Return the whole lines after `offset`, and where they begin: of very many, only the last ones."""
    size = os.fstat(handle).st_size
    begin = max(offset, size - _MOST_GROWTH_BYTES)
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
    reader: reading.TranscriptReader, path: str, before: RecordCursor | None, native_id: str
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


def _find_oldest(reader: reading.TranscriptReader, path: str, native_id: str) -> str:
    """Return the id of the conversation's first message; empty if there is none."""
    tables = reader.tables
    if tables is None or not native_id:
        return ""
    rows = files.query_database(
        path, lambda database: database.execute(tables.oldest, (native_id,)).fetchall()
    )
    return str(rows[0]["id"] or "") if rows else ""


def _seal_row(source: reading.TranscriptSource, message: str) -> str:
    """Return a check sum of a message and its parts, which may have been read before they were complete."""
    own = [one for one in source.messages if one.get("id") == message]
    parts = [part for part in source.parts if part.get("message_id") == message]
    seal = 0
    for row in (*own, *parts):
        seal = zlib.crc32(str(row.get("data")).encode("utf-8", "replace"), seal)
    return f"{seal:08x}"


def _leave_out(source: reading.TranscriptSource, message: str) -> reading.TranscriptSource:
    return replace(
        source,
        messages=tuple(one for one in source.messages if one.get("id") != message),
        parts=tuple(part for part in source.parts if part.get("message_id") != message),
    )
