"""Reads what the agents on this machine have used, from their own files: each time only what is new."""

import os
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.logic.metrics.damage import Damage
from agent_relay.logic.metrics.pool import Native, pool_marks
from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.logic.transcripts.usage.registry import USAGE_READERS, UsageReader, UsageTables
from agent_relay.system.kept_reports import YOUNG_NS
from agent_relay.system.transcript_files import query_database, read_small
from agent_relay.system.usage_crew import Crew, Task, start_crew
from agent_relay.system.usage_files import Found, UsageSpec, Walked, find_usage_files, look_at
from agent_relay.system.usage_index import Entry, UsageIndex, open_index
from agent_relay.system.usage_part import Part, read_part

_MARK_BYTES = 64 << 10
_MARK_LEVELS = 4


@dataclass(slots=True)
class UsageRead:
    """The native sessions found, and how the reading went.

    `problems` are sentences about files that could not be read, `gaps` the first of them by agent; `skipped`
    counts lines that could not, `damages` those of each file.
    `looked` are the paths of all files read now or before, and of the folders they were looked for in.
    `roots` are the working folders that files beside them name, by the folder they are in.
    """

    natives: list[Native] = field(default_factory=list)
    files: int = 0
    new_bytes: int = 0
    skipped: int = 0
    damages: list[Damage] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    gaps: dict[str, str] = field(default_factory=dict)
    looked: list[str] = field(default_factory=list)
    roots: dict[str, str] = field(default_factory=dict)


def read_usage(
    specs: Mapping[str, UsageSpec],
    index_path: str,
    *,
    home: str,
    environ: Mapping[str, str],
    hands: int = 1,
    meanwhile: Callable[[], None] = lambda: None,
) -> UsageRead:
    """What the agents named in `specs` have used, as far as their files are still there.

    Files that two agents share, as two adapters of one program do, are the first one's. A file that cannot be
    read is told of and left out. Much that is new is read by `hands` processes, forked from this one, which
    must have no threads then; `meanwhile` is what this one has to do anyway. Raises ConfigurationError for a
    broken pattern.
    """
    done = UsageRead()
    with open_index(index_path) as index:
        plan = _plan(specs, index, done, home=home, environ=environ)
        with start_crew(_list_new(plan, index, done) if hands > 1 else (), hands) as crew:
            meanwhile()
            reading = _Reading(index, done, crew)
            for files in plan:
                known = len(done.problems)
                transcripts = (_note_damage(reading, files, one) for one in files.found)
                done.natives += pool_marks(files.agent, transcripts)
                if len(done.problems) > known:
                    done.gaps[files.agent] = done.problems[known]
    return done


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of one agent, and how the index calls what `reader` makes of them."""

    agent: str
    reader: UsageReader
    name: str
    found: list[Found]


def _plan(
    specs: Mapping[str, UsageSpec],
    index: UsageIndex,
    done: UsageRead,
    *,
    home: str,
    environ: Mapping[str, str],
) -> list[_Files]:
    """Whose files are to be read, each file once; what the index has of others is forgotten."""
    plan, taken = list[_Files](), set[tuple[int, int]]()
    for agent, spec in specs.items():
        reader = USAGE_READERS.get(spec.reader)
        if reader is None:
            continue
        walked = Walked(done.looked)
        found = [
            one
            for one in find_usage_files(spec, home=home, environ=environ, walked=walked)
            if (one.device, one.inode) not in taken
        ]
        taken |= {(one.device, one.inode) for one in found}
        paths = [one.path for one in found]
        done.looked += paths
        files = _Files(agent, reader, f"{agent} {spec.reader}", found)
        if walked.closed:
            done.problems += walked.closed
            done.gaps[agent] = walked.closed[0]
        else:
            index.forget_others(paths, files.name)
        plan.append(files)
    return plan


def _list_new(plan: list[_Files], index: UsageIndex, done: UsageRead) -> list[Task]:
    """The growing files the index does not know."""
    return [
        Task(files.reader, one.path, one.size, _begin_memory(files.reader, one.path, done))
        for files in plan
        if files.reader.read is not None
        for one in files.found
        if index.get(one.path, files.name) is None
    ]


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reads files one by one: what the index has of them, what others have read, and the rest itself."""

    index: UsageIndex
    done: UsageRead
    crew: Crew

    def read(self, files: _Files, found: Found) -> list[Mark]:
        """The marks of one file; none, and a problem, where it cannot be read."""
        self.done.files += 1
        try:
            if files.reader.tables is not None:
                return self._read_tables(files.reader.tables, files.name, found)
            return self._read_lines(files.reader, files.name, found)
        except RelayError as error:
            self.done.problems.append(error.sentence)
            return []

    def _read_tables(self, tables: UsageTables, name: str, found: Found) -> list[Mark]:
        """The marks of a database: all of it again where it has changed, because its rows change in place."""
        log = look_at(f"{found.path}-wal")
        self.done.looked.append(f"{found.path}-wal")
        began_ns = time.time_ns()
        # SQLite itself touches a log's inode by looking at it: only its contents' moment tells anything.
        size, changed = (log.size, log.changed[:1]) if log is not None else (0, ())
        state = replace(found, size=found.size + size, changed=found.changed + changed)
        entry = self.index.get(found.path, name)
        if entry is not None and entry.found == state:
            marks = _recall(self.index, entry)
            if marks is not None:
                self.done.skipped += entry.memory.skipped
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
        self.index.put(Entry(state, name, 0, b"", memory), marks, is_new=True)
        self.done.new_bytes += state.size
        self.done.skipped += memory.skipped
        return marks

    def _read_lines(self, reader: UsageReader, name: str, found: Found) -> list[Mark]:
        """The marks of a file that grows: those kept, and those of what it has grown by."""
        entry = self.index.get(found.path, name)
        kept = None if entry is None or not _goes_on(entry.found, found) else _recall(self.index, entry)
        is_moved = (
            entry is not None
            and bool(reader.root_mark)
            and entry.memory.cwd != _find_root(reader, found.path, self.done)
        )
        if entry is None or kept is None or is_moved:
            return self._read_anew(reader, name, found)
        if entry.found == found and entry.offset == found.size:
            self.done.skipped += entry.memory.skipped
            return kept
        part = read_part(reader, found.path, entry.offset, entry.guard, entry.memory)
        if part is None:
            return self._read_anew(reader, name, found)
        return kept + self._keep(part, replace(entry, found=found), is_new=False)

    def _read_anew(self, reader: UsageReader, name: str, found: Found) -> list[Mark]:
        memory = _begin_memory(reader, found.path, self.done)
        part = self.crew.take(found.path) or read_part(reader, found.path, 0, b"", memory)
        return self._keep(part, Entry(found, name, 0, b"", memory), is_new=True) if part is not None else []

    def _keep(self, part: Part, entry: Entry, *, is_new: bool) -> list[Mark]:
        """The marks of what came behind `entry`, kept up to the last whole line."""
        now = replace(entry, offset=part.offset, guard=part.guard, memory=part.memory)
        self.index.put(now, part.marks, is_new=is_new, encoded=part.encoded)
        self.done.new_bytes += part.offset - entry.offset
        self.done.skipped += part.memory.skipped
        return part.marks + part.loose


def _note_damage(reading: _Reading, files: _Files, found: Found) -> list[Mark]:
    """The marks of a file; lines of it that cannot be read are noted with when it was last written."""
    known = reading.done.skipped
    marks = reading.read(files, found)
    if reading.done.skipped > known:
        log = look_at(f"{found.path}-wal")
        written_ns = max(one.changed[0] for one in (found, log) if one is not None)
        lines = reading.done.skipped - known
        reading.done.damages.append(Damage(files.agent, lines, written_ns // 1_000_000))
    return marks


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


def _begin_memory(reader: UsageReader, path: str, done: UsageRead) -> Memory:
    """What a reader knows before the first line."""
    return Memory(cwd=_find_root(reader, path, done), parent=_find_parent(reader, path))


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
