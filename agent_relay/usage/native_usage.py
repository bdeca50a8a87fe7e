"""Read what the agents on this machine have used from their own files, each time only what is new."""

import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from contextlib import closing

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.plain import render_count
from agent_relay.sources.transcript_files import query_database, read_small
from agent_relay.transcripts import usage_records as records
from agent_relay.transcripts.usage_readers import USAGE_READERS, UsageReader, UsageTables
from agent_relay.usage._dedupe import dedupe_marks
from agent_relay.usage.index import Entry, UsageIndex, open_index
from agent_relay.usage.record_files import Found, Part, UsageSpec, find_usage_files, look_at, read_part

TYPE_CHECKING = False

if TYPE_CHECKING:
    from agent_relay.usage._dedupe import Native


class Damage(msgspec.Struct, frozen=True):
    """So many `lines` of one of the agent's files, last written at `at` (epoch in ms), cannot be read.

    A last line without its end does not count: it may be being written.
    """

    agent: str
    lines: int
    at: int


def describe_damage(damages: Sequence[Damage], since: Mapping[str, int]) -> str:
    """Say in words, without a capital, what may be missing in what agents used; empty for nothing.

    `since` says by agent from when on (epoch in ms) its use counts; other agents do not count. When a
    damaged line was written is unknown, only that it was not after the file's last change.
    """
    lines: dict[str, int] = {}
    for damage in damages:
        if damage.agent in since and damage.at >= since[damage.agent]:
            lines[damage.agent] = lines.get(damage.agent, 0) + damage.lines
    if not lines:
        return ""
    named = [f"{render_count(count, 'line')} of {agent}'s records" for agent, count in lines.items()]
    return f"{' and '.join(named)} cannot be read"


_MARK_BYTES = 64 << 10
_MARK_LEVELS = 4


class UsageRead(msgspec.Struct):
    """The native sessions found, and how the reading went.

    `problems` are sentences about files that could not be read, `gaps` the first of them by agent; `skipped`
    counts lines that could not, `damages` those of each file. `roots` are the working folders named in files
    beside the records, by the folder they are in.
    """

    natives: "list[Native]" = msgspec.field(default_factory=list)
    files: int = 0
    new_bytes: int = 0
    skipped: int = 0
    damages: "list[Damage]" = msgspec.field(default_factory=list)
    problems: list[str] = msgspec.field(default_factory=list)
    gaps: dict[str, str] = msgspec.field(default_factory=dict)
    roots: dict[str, str] = msgspec.field(default_factory=dict)


class AgentFiles(msgspec.Struct, frozen=True):
    """The files of one agent, its reader, and the `name` of both in the index."""

    agent: str
    reader: UsageReader
    name: str
    found: list[Found]


def plan_files(
    specs: Mapping[str, UsageSpec], done: UsageRead, *, home: str, environ: Mapping[str, str]
) -> list[AgentFiles]:
    """Return the files to read by agent, each file once; a folder that cannot be opened leaves a gap."""
    plan, taken = list[AgentFiles](), set[tuple[int, int]]()
    for agent, spec in specs.items():
        load_reader = USAGE_READERS.get(spec.reader)
        if load_reader is None:
            continue
        closed = list[str]()
        found = [
            one
            for one in find_usage_files(spec, home=home, environ=environ, closed=closed)
            if (one.device, one.inode) not in taken
        ]
        taken |= {(one.device, one.inode) for one in found}
        if closed:
            done.problems += closed
            done.gaps[agent] = closed[0]
        # Most agents are not on most machines, and need nobody who understands them.
        plan.append(
            AgentFiles(agent, load_reader() if found else UsageReader(), f"{agent} {spec.reader}", found)
        )
    return plan


def begin_memory(reader: UsageReader, path: str, done: UsageRead) -> records.ReaderState:
    """Return what a reader knows before the first line."""
    return records.ReaderState(cwd=find_root(reader, path, done), parent=_find_parent(reader, path))


def find_root(reader: UsageReader, path: str, done: UsageRead) -> str:
    """Return the working folder if a file in a folder above `path` names it; else empty."""
    if not reader.root_mark:
        return ""
    folder = beside = os.path.dirname(path)
    if beside in done.roots:
        return done.roots[beside]
    found = ""
    for _ in range(_MARK_LEVELS):
        mark = os.path.join(folder, reader.root_mark)
        data = read_small(mark, limit_bytes=_MARK_BYTES)
        if data is not None:
            found = os.fsdecode(data).strip()
            break
        folder = os.path.dirname(folder)
    done.roots[beside] = found
    return found


def _find_parent(reader: UsageReader, path: str) -> str:
    """Return the session in whose folder a subagent's file lies; empty for a main session's."""
    if not reader.sessions_folder:
        return ""
    folder = os.path.basename(os.path.dirname(path))
    return "" if folder == reader.sessions_folder else folder


_YOUNG_NS = 2_000_000_000
"""Nanoseconds since a change within which a file may change again without its time stamp showing it."""


def read_planned(plan: list[AgentFiles], index: UsageIndex, done: UsageRead) -> None:
    """Read all planned files; add their native sessions, and why some could not be read, to `done`."""
    reading = _Reading(index, done)
    for files in plan:
        known = len(done.problems)
        transcripts = (_note_damage(reading, files, one) for one in files.found)
        done.natives += dedupe_marks(files.agent, transcripts)
        if len(done.problems) > known:
            done.gaps[files.agent] = done.problems[known]


class _Reading(msgspec.Struct, frozen=True):
    """Reads files one by one: as the index has them, and what is new."""

    index: UsageIndex
    done: UsageRead

    def read(self, files: AgentFiles, found: Found) -> list[records.UsageRecord]:
        """Return the records of one file; none, and a problem in `done`, if it cannot be read."""
        self.done.files += 1
        try:
            if files.reader.tables is not None:
                return self._read_tables(files.reader.tables, files.name, found)
            return self._read_lines(files.reader, files.name, found)
        except RelayError as error:
            self.done.problems.append(error.sentence)
            return []

    def _read_tables(self, tables: UsageTables, name: str, found: Found) -> list[records.UsageRecord]:
        """Return the records of a database, all of them anew if it changed: its rows change in place."""
        log = look_at(f"{found.path}-wal")
        began_ns = time.time_ns()
        # SQLite itself touches a log's inode by looking at it: only its contents' moment tells anything.
        size, changed = (log.size, log.changed[:1]) if log is not None else (0, ())
        state = msgspec.structs.replace(found, size=found.size + size, changed=found.changed + changed)
        entry = self.index.get(found.path, name)
        if entry is not None and entry.found == state:
            marks = _recall(self.index, entry)
            if marks is not None:
                self.done.skipped += entry.memory.skipped
                return marks
        memory = records.ReaderState()

        def read(database: sqlite3.Connection) -> list[records.UsageRecord]:
            marks: list[records.UsageRecord] = []
            with closing(database.execute(tables.sessions)) as rows:
                marks += [mark for row in rows for mark in tables.read_session(dict(row))]
            with closing(database.execute(tables.messages)) as rows:
                marks += [mark for row in rows for mark in tables.read_message(dict(row), memory)]
            return marks

        marks = query_database(found.path, read)
        if max(state.changed) >= began_ns - _YOUNG_NS:
            # It may change again without looking changed: what is kept has to be of no state it will be in.
            state = msgspec.structs.replace(state, changed=())
        self.index.put(Entry(state, name, 0, b"", memory), marks, is_new=True)
        self.done.new_bytes += state.size
        self.done.skipped += memory.skipped
        return marks

    def _read_lines(self, reader: UsageReader, name: str, found: Found) -> list[records.UsageRecord]:
        """Return the records of a growing file: those in the index, and those of the part added since."""
        entry = self.index.get(found.path, name)
        kept = None if entry is None or not _goes_on(entry.found, found) else _recall(self.index, entry)
        is_moved = (
            entry is not None
            and bool(reader.root_mark)
            and entry.memory.cwd != find_root(reader, found.path, self.done)
        )
        if entry is None or kept is None or is_moved:
            return self._read_anew(reader, name, found)
        if entry.found == found and entry.offset == found.size:
            self.done.skipped += entry.memory.skipped
            return kept
        part = read_part(reader, found.path, entry.offset, entry.guard, entry.memory)
        if part is None:
            return self._read_anew(reader, name, found)
        return kept + self._keep(part, msgspec.structs.replace(entry, found=found), is_new=False)

    def _read_anew(self, reader: UsageReader, name: str, found: Found) -> list[records.UsageRecord]:
        memory = begin_memory(reader, found.path, self.done)
        part = read_part(reader, found.path, 0, b"", memory)
        return self._keep(part, Entry(found, name, 0, b"", memory), is_new=True) if part is not None else []

    def _keep(self, part: Part, entry: Entry, *, is_new: bool) -> list[records.UsageRecord]:
        """Put the part read after `entry`, up to its last whole line, into the index; return its records."""
        now = Entry(entry.found, entry.reader, part.offset, part.guard, part.memory, entry.parts)
        self.index.put(now, part.marks, is_new=is_new)
        self.done.new_bytes += part.offset - entry.offset
        self.done.skipped += part.memory.skipped
        return part.marks + part.loose


def _note_damage(reading: _Reading, files: AgentFiles, found: Found) -> list[records.UsageRecord]:
    """Return the records of a file; note how many lines cannot be read and when it was last written."""
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


def _recall(index: UsageIndex, entry: Entry) -> list[records.UsageRecord] | None:
    try:
        return index.read_marks(entry)
    except (sqlite3.Error, msgspec.DecodeError):
        return None


def read_usage(
    specs: Mapping[str, UsageSpec], index_path: str, *, home: str, environ: Mapping[str, str]
) -> UsageRead:
    """Return what the agents named in `specs` have used, as far as their files still exist.

    Files that two agents share, as two adapters of one program do, count for the first one. A file that
    cannot be read is reported in `problems` and left out. Raises ConfigurationError for a broken pattern.
    """
    done = UsageRead()
    plan = plan_files(specs, done, home=home, environ=environ)
    with open_index(index_path) as index:
        for files in plan:
            if files.agent not in done.gaps:
                index.forget_others([one.path for one in files.found], files.name)
        read_planned(plan, index, done)
    return done
