"""Read the planned files: take what the index has, and read the rest."""

import sqlite3
import time
from contextlib import closing

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.sources.transcript_databases import query_database
from agent_relay.transcripts.usage.readers import UsageReader, UsageTables
from agent_relay.transcripts.usage.records import ReaderState, UsageRecord
from agent_relay.usage._dedupe import dedupe_marks
from agent_relay.usage.scan.damage import Damage
from agent_relay.usage.scan.files import Found, look_at
from agent_relay.usage.scan.growing_file import Part, read_part
from agent_relay.usage.scan.index import Entry, UsageIndex
from agent_relay.usage.scan.plan import AgentFiles, UsageRead, begin_memory, find_root

_YOUNG_NS = 2_000_000_000
"""A file changed so shortly before may change again without its time stamp showing it."""


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

    def read(self, files: AgentFiles, found: Found) -> list[UsageRecord]:
        """Return the records of one file; none, and a problem in `done`, if it cannot be read."""
        self.done.files += 1
        try:
            if files.reader.tables is not None:
                return self._read_tables(files.reader.tables, files.name, found)
            return self._read_lines(files.reader, files.name, found)
        except RelayError as error:
            self.done.problems.append(error.sentence)
            return []

    def _read_tables(self, tables: UsageTables, name: str, found: Found) -> list[UsageRecord]:
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
        memory = ReaderState()

        def read(database: sqlite3.Connection) -> list[UsageRecord]:
            marks: list[UsageRecord] = []
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

    def _read_lines(self, reader: UsageReader, name: str, found: Found) -> list[UsageRecord]:
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

    def _read_anew(self, reader: UsageReader, name: str, found: Found) -> list[UsageRecord]:
        memory = begin_memory(reader, found.path, self.done)
        part = read_part(reader, found.path, 0, b"", memory)
        return self._keep(part, Entry(found, name, 0, b"", memory), is_new=True) if part is not None else []

    def _keep(self, part: Part, entry: Entry, *, is_new: bool) -> list[UsageRecord]:
        """Put the part read after `entry`, up to its last whole line, into the index; return its records."""
        now = Entry(entry.found, entry.reader, part.offset, part.guard, part.memory, entry.parts)
        self.index.put(now, part.marks, is_new=is_new)
        self.done.new_bytes += part.offset - entry.offset
        self.done.skipped += part.memory.skipped
        return part.marks + part.loose


def _note_damage(reading: _Reading, files: AgentFiles, found: Found) -> list[UsageRecord]:
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


def _recall(index: UsageIndex, entry: Entry) -> list[UsageRecord] | None:
    try:
        return index.read_marks(entry)
    except (sqlite3.Error, msgspec.DecodeError):
        return None
