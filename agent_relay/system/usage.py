"""Reads what the agents on this machine have used, from their own files: each time only what is new."""

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

import msgspec

from agent_relay.domain.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.logic.metrics.pool import Native, pool_marks
from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.logic.transcripts.usage.registry import USAGE_READERS, UsageReader, UsageTables
from agent_relay.system.kept_reports import YOUNG_NS
from agent_relay.system.transcript_files import query_database, read_small
from agent_relay.system.usage_files import Found, find_usage_files, look_at, read_blocks
from agent_relay.system.usage_index import Entry, UsageIndex, open_index

_MARK_BYTES = 64 << 10
_MARK_LEVELS = 4


@dataclass(slots=True)
class UsageRead:
    """The native sessions found, and how the reading went.

    `problems` are sentences about files that could not be read, `gaps` the first of them by agent; `skipped`
    counts lines that could not.
    `looked` are the paths of all files read now or before, and of the folders they were looked for in.
    `roots` are the working folders that files beside them name, by the folder they are in.
    """

    natives: list[Native] = field(default_factory=list)
    files: int = 0
    new_bytes: int = 0
    skipped: int = 0
    problems: list[str] = field(default_factory=list)
    gaps: dict[str, str] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)


def read_usage(
    specs: Mapping[str, Transcript], index_path: str, *, home: str, environ: Mapping[str, str]
) -> UsageRead:
    """What the agents named in `specs` have used, as far as their files are still there.

    Files that two agents share, as two adapters of one program do, are the first one's. A file that cannot be
    read is told of and left out. Raises ConfigurationError for a broken pattern.
    """
    done, taken = UsageRead(), set[tuple[int, int]]()
    with open_index(index_path) as index:
        for agent, spec in specs.items():
            reader = USAGE_READERS.get(spec.reader)
            if reader is None:
                continue
            found = [
                one
                for one in find_usage_files(spec, home=home, environ=environ, looked=done.looked)
                if (one.device, one.inode) not in taken
            ]
            taken |= {(one.device, one.inode) for one in found}
            done.looked += [one.path for one in found]
            index.forget_others([one.path for one in found], _name_entry(agent, spec))
            known = len(done.problems)
            transcripts = [_read_one(reader, _name_entry(agent, spec), one, index, done) for one in found]
            done.natives += pool_marks(agent, transcripts)
            if len(done.problems) > known:
                done.gaps[agent] = done.problems[known]
    return done


def _name_entry(agent: str, spec: Transcript) -> str:
    return f"{agent} {spec.reader}"


def _read_one(reader: UsageReader, name: str, found: Found, index: UsageIndex, done: UsageRead) -> list[Mark]:
    done.files += 1
    try:
        if reader.tables is not None:
            return _read_tables(reader.tables, name, found, index, done)
        return _read_lines(reader, name, found, index, done)
    except RelayError as error:
        done.problems.append(error.sentence)
        return []


def _read_tables(
    tables: UsageTables, name: str, found: Found, index: UsageIndex, done: UsageRead
) -> list[Mark]:
    """The marks of a database: all of it again where it has changed, because its rows change in place."""
    log = look_at(f"{found.path}-wal")
    done.looked.append(f"{found.path}-wal")
    began_ns = time.time_ns()
    # SQLite itself touches a log's inode by looking at it, so that only its contents' moment tells anything.
    size, changed = (log.size, log.changed[:1]) if log is not None else (0, ())
    state = replace(found, size=found.size + size, changed=found.changed + changed)
    entry = index.get(found.path, name)
    if entry is not None and entry.found == state:
        marks = _recall(index, entry)
        if marks is not None:
            done.skipped += entry.memory.skipped
            return marks
    memory = Memory()

    def read(database: sqlite3.Connection) -> list[Mark]:
        marks: list[Mark] = []
        with closing(database.execute(tables.sessions)) as rows:
            marks += [mark for row in rows for mark in tables.read_session(dict(row))]
        with closing(database.execute(tables.messages)) as rows:
            marks += [mark for row in rows for mark in tables.read_message(dict(row), memory)]
        return marks

    marks = query_database(found.path, read)
    if max(state.changed) >= began_ns - YOUNG_NS:
        # It may change again without looking changed: what is kept has to be of no state it will be in.
        state = replace(state, changed=())
    index.put(Entry(state, name, 0, b"", memory), marks, is_new=True)
    done.new_bytes += state.size
    done.skipped += memory.skipped
    return marks


def _read_lines(
    reader: UsageReader, name: str, found: Found, index: UsageIndex, done: UsageRead
) -> list[Mark]:
    """The marks of a file that grows: those kept, and those of what it has grown by."""
    entry = index.get(found.path, name)
    kept = None if entry is None or not _goes_on(entry.found, found) else _recall(index, entry)
    is_moved = (
        entry is not None
        and bool(reader.root_mark)
        and entry.memory.cwd != _find_root(reader, found.path, done)
    )
    if entry is None or kept is None or is_moved:
        return _read_anew(reader, name, found, index, done)
    if entry.found == found and entry.offset == found.size:
        done.skipped += entry.memory.skipped
        return kept
    fresh = _read_from(reader, replace(entry, found=found), index, done, is_new=False)
    return _read_anew(reader, name, found, index, done) if fresh is None else kept + fresh


def _has_moved(reader: UsageReader, entry: Entry, done: UsageRead) -> bool:
    """Whether a file beside it names another working folder than when it was read."""
    return bool(reader.root_mark) and entry.memory.cwd != _find_root(reader, entry.found.path, done)


def _goes_on(before: Found, now: Found) -> bool:
    if (before.device, before.inode) != (now.device, now.inode) or now.size < before.size:
        return False
    # Changed without having grown: something in it was replaced.
    return now.size > before.size or now.changed == before.changed


def _recall(index: UsageIndex, entry: Entry) -> list[Mark] | None:
    try:
        return index.read_marks(entry)
    except (sqlite3.Error, msgspec.DecodeError):
        return None


def _read_anew(
    reader: UsageReader, name: str, found: Found, index: UsageIndex, done: UsageRead
) -> list[Mark]:
    memory = Memory(cwd=_find_root(reader, found.path, done), parent=_find_parent(reader, found.path))
    return _read_from(reader, Entry(found, name, 0, b"", memory), index, done, is_new=True) or []


def _read_from(
    reader: UsageReader, entry: Entry, index: UsageIndex, done: UsageRead, *, is_new: bool
) -> list[Mark] | None:
    """The marks from `entry.offset` on, kept up to the last whole line; `None` where the file is another."""
    read, found, memory, fresh = reader.read, entry.found, entry.memory, list[Mark]()
    if read is None:
        return []
    result = read_blocks(
        found.path, entry.offset, entry.guard, lambda block: fresh.extend(read(block, memory))
    )
    if result is None:
        return None
    offset, guard, rest = result
    index.put(replace(entry, offset=offset, guard=guard), fresh, is_new=is_new)
    done.new_bytes += offset - entry.offset
    done.skipped += memory.skipped
    if rest:
        # A last line without its end may be whole: it counts today, and is read again tomorrow.
        fresh.extend(read(rest, msgspec.structs.replace(memory)))
    return fresh


def _find_root(reader: UsageReader, path: str, done: UsageRead) -> str:
    """The working folder, where a file in a folder above names it."""
    folder = beside = os.path.dirname(path)
    if beside in done.roots:
        return done.roots[beside]
    found = ""
    for _ in range(_MARK_LEVELS if reader.root_mark else 0):
        mark = os.path.join(folder, reader.root_mark)
        done.looked.append(mark)
        data = read_small(mark, limit_bytes=_MARK_BYTES)
        if data is not None:
            found = os.fsdecode(data).strip()
            break
        folder = os.path.dirname(folder)
    done.roots[beside] = found
    return found


def _find_parent(reader: UsageReader, path: str) -> str:
    """The session a subagent's file lies in the folder of; empty for a main session's."""
    folder = os.path.basename(os.path.dirname(path))
    return "" if not reader.sessions_folder or folder == reader.sessions_folder else folder
