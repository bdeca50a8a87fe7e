"""Find one source's files as they appear, and turn what is added to them into records."""

import json
import os
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from agent_relay.agents.source_paths import LegPlace, PathPattern, expand_path, expand_text
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.documents.record_matching import find_dotted, is_meant
from agent_relay.domain.limits import Record, Source
from agent_relay.sources._file_cursor import Cursor, DocumentCursor, TailCursor
from agent_relay.sources.record_fields import find_record_time
from agent_relay.sources.record_framing import Data, Framed, build_framer
from agent_relay.system.disk.files import find_regular
from agent_relay.system.processes import find_open_elsewhere, find_open_files

MAX_FILES = 8
MAX_SEEN = 64
MAX_STRANGERS = 4096
_REFUSED_S = 1.0  # a file of somebody else's is asked about again: the agent may go on in it later
_HEAD_BYTES = 256 * 1024  # the first record of a transcript may carry a whole system prompt

# File times and some agents' clocks are coarser than ours; nothing this close is history.
_SLACK = timedelta(seconds=2)


class SourceReader:
    """The files of one source, read from what they held when the leg started.

    A file that exists when the leg starts counts from its end, a new one from its beginning. Where a glob
    matches several, all that changed since the start are read, but only the newest few: if an agent begins
    a new file (a cleared or forked session, a subagent), that is followed as well as the old one.
    `state` is what a reader of the same source needs to continue after a crash.
    """

    def __init__(
        self, spec: SourceSpec, place: LegPlace, *, state: Mapping[str, object] | None = None
    ) -> None:
        self.spec = spec
        self._place = place
        self._pattern = expand_path(spec.path, place)
        self._cursors: dict[str, Cursor] = {}
        self._strangers: set[tuple[str, int]] = set()
        self._refused: dict[str, float] = {}
        self._kept = _mapping((state or {}).get("files"))
        self._seen = dict(self._look_around() if state is None else _sizes(state.get("seen")))

    @property
    def pattern(self) -> PathPattern | None:
        """The pattern of the files' paths; `None` while a value is missing."""
        return self._pattern

    @property
    def is_literal(self) -> bool:
        """True if the file is found without a walk through folders."""
        return self._pattern is None or self._pattern.literal is not None

    @property
    def folders(self) -> set[str]:
        """The existing folders in which something may happen: the files' own, and the pattern's nearest."""
        if self._pattern is None:
            return set()
        nearest = self._pattern.folder
        while not os.path.isdir(nearest) and nearest != "/":
            nearest = os.path.dirname(nearest)
        return {nearest, *(os.path.dirname(path) for path in self._cursors)}

    @property
    def has_more(self) -> bool:
        """True if the last look left bytes unread."""
        return any(cursor.has_more for cursor in self._cursors.values())

    @property
    def is_waiting(self) -> bool:
        """True while a log entry waits for the file to be quiet."""
        return any(cursor.is_waiting for cursor in self._cursors.values())

    def update(self, place: LegPlace) -> None:
        """Use values learnt since; stop reading files that no longer match the pattern.

        One that matches again later (a conversation that was left and resumed) is read from where it was
        left: its earlier records are not delivered again.
        """
        self._place = place
        self._pattern = expand_path(self.spec.path, place)
        for path in list(self._cursors):
            if self._pattern is None or not self._pattern.matches(path):
                self._kept[path] = self._cursors.pop(path).keep()

    def resolve(self) -> None:
        """Look for files that have appeared, and follow the newest ones."""
        if self._pattern is None or self._pattern.literal in self._cursors:
            return
        born = sorted(self._candidates(), key=_changed_at, reverse=True)
        for path in reversed(born[:MAX_FILES]):
            self.meet(path)

    def meet(self, path: str) -> bool:
        """Follow the file at `path` if it is this source's; return whether it is followed."""
        if path in self._cursors:
            return True
        if self._pattern is None or not self._pattern.matches(path) or not self._belongs(path):
            return False
        self._cursors[path] = self._open(path)
        while len(self._cursors) > MAX_FILES:
            self._cursors.pop(min(self._cursors, key=_changed_at))
        return path in self._cursors

    def look(self) -> list[Record]:
        """Return the records that came since the last look."""
        return [
            record
            for path, cursor in list(self._cursors.items())
            for record in self._build(path, cursor.look())
        ]

    def flush(self) -> list[Record]:
        """Return the log entries whose files have been quiet."""
        return [
            record
            for path, cursor in list(self._cursors.items())
            if cursor.is_waiting
            for record in self._build(path, cursor.flush())
        ]

    def state(self) -> dict[str, object]:
        """Return the state for the next reader of this source, as plain JSON values."""
        files = {path: cursor.keep() for path, cursor in self._cursors.items()}
        return {"seen": dict(self._seen), "files": {**self._kept, **files}}

    def _look_around(self) -> Iterator[tuple[str, int]]:
        """Yield the newest files' sizes, from before the leg writes its first byte."""
        if self._pattern is None:
            return
        found = sorted(self._pattern.find(), key=_changed_at, reverse=True)
        for path in found[:MAX_SEEN]:
            try:
                yield path, os.stat(path).st_size
            except OSError:
                continue

    def _candidates(self) -> Iterator[str]:
        since_ns = int((self._place.started_at - _SLACK).timestamp() * 1e9)
        if self._pattern is not None:
            for path in self._pattern.find():
                if path in self._cursors or path in self._kept or _changed_at(path) >= since_ns:
                    yield path

    def _open(self, path: str) -> Cursor:
        kept = self._kept.pop(path, None)
        saved = _mapping(kept) if kept is not None else None
        if self.spec.framing != "json":
            start, frees = self._seen.get(path, 0), self._is_the_legs(path)
            return TailCursor(path, self.spec.framing, start=start, kept=saved, frees=frees)
        document = DocumentCursor(path, kept=saved)
        if (
            saved is None
            and path in self._seen
            and _changed_at(path) < self._place.started_at.timestamp() * 1e9
        ):
            document.look()
        return document

    def _is_the_legs(self, path: str) -> bool:
        """Check whether the file is in the leg's own folder and, unlike a stream, has no other reader."""
        return self.spec.role != "stream" and os.path.dirname(path) == self._place.values.get("leg_folder")

    def _belongs(self, path: str) -> bool:
        """Check whether the file's first records carry the values that make it this leg's.

        A file that does not have them yet is checked again; one with other values is not.
        """
        if not self.spec.belongs:
            return self._is_held(path)
        file = find_regular(path)
        if file is None:
            return False
        try:
            mark = (path, os.fstat(file).st_ino)
            if mark in self._strangers:
                return False
            head = os.pread(file, _HEAD_BYTES, 0)
        finally:
            os.close(file)
        verdict = self._ask(build_framer(self.spec.framing).feed(head + b"\n"))
        if verdict is False:
            if len(self._strangers) >= MAX_STRANGERS:
                self._strangers.clear()
            self._strangers.add(mark)
        return bool(verdict) and self._is_held(path)

    def _is_held(self, path: str) -> bool:
        """Check whether the leg's processes have the file open, if its agent keeps such files open.

        Where that cannot be found out (the agent has ended, or its processes may not be inspected), a file
        counts if no other process has it open, unless it was refused before.
        """
        pid = int(self._place.values.get("pid") or 0)
        now = time.monotonic()
        if not self.spec.held_open:
            return True
        if not pid or self._pattern is None or now - self._refused.get(path, -_REFUSED_S) < _REFUSED_S:
            return False
        real, held = os.path.realpath(path), find_open_files(pid, self._pattern.is_called_so)
        is_ours = real in held if held is not None else path not in self._refused
        if is_ours and (held is not None or not find_open_elsewhere({real}, but=pid)):
            self._refused.pop(path, None)
            return True
        if len(self._refused) >= MAX_STRANGERS:
            self._refused.clear()
        self._refused[path] = now
        return False

    def _ask(self, records: list[Data]) -> bool | None:
        for data in records:
            said = {place: _find_text(data, place) for place in self.spec.belongs}
            if None in said.values():
                continue
            if not is_meant(self.spec.belongs_where, data):
                return False
            wanted = {place: expand_text(text, self._place) for place, text in self.spec.belongs.items()}
            return all(_is_same(said[place], wanted[place]) for place in said)
        return None

    def _build(self, path: str, framed: list[Framed]) -> Iterator[Record]:
        source = Source(self.spec.role)
        # A stream is the leg's own: what carries no time is as old as the file's last line.
        written = _read_change(path) if framed and source is Source.STREAM else None
        for offset, data in framed:
            at = find_record_time(data) or written
            if at is None or at >= self._place.started_at - _SLACK:
                yield Record(source, data, at, f"{path}:{offset}")


def build_key(spec: SourceSpec) -> str:
    """Build the key of a source's state: the same for the same source in another daemon."""
    return json.dumps([spec.role, spec.framing, spec.path])


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _read_change(path: str) -> datetime | None:
    changed_ns = _changed_at(path)
    return datetime.fromtimestamp(changed_ns / 1e9, UTC) if changed_ns else None


def _find_text(data: Data, place: str) -> str | None:
    value = find_dotted(data, place)
    return value if isinstance(value, str) else None


def _is_same(said: str | None, wanted: str | None) -> bool:
    if said is None or wanted is None or said == wanted:
        return said == wanted
    return said.startswith("/") and os.path.realpath(said) == os.path.realpath(wanted)


def _mapping(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, dict) else {}


def _sizes(value: object) -> dict[str, int]:
    return {path: size for path, size in _mapping(value).items() if isinstance(size, int) and size >= 0}
