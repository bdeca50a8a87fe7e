"""Finds the sessions agents keep themselves, and reads one into facts."""

import glob
import heapq
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from agent_relay.domain.adapter import Transcript
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.facts import Facts, NativeSession
from agent_relay.logic.packet.quotable import trim_facts
from agent_relay.logic.transcripts.lines import parse_moment
from agent_relay.logic.transcripts.registry import READERS
from agent_relay.logic.transcripts.shape import Ancestor, Fork, Peek, Reader, Source
from agent_relay.system.sources.place import LegPlace, expand_path
from agent_relay.system.transcript_files import (
    cannot_read,
    is_database,
    iterate_lines,
    list_rows,
    read_beginning,
    read_small,
    read_tables,
)

# Files looked into, newest first, before a search gives up; a folder's own session is among the newest.
_PEEKED_FILES = 500
_PEEKED_LINES = 60
_PEEKED_BYTES = 16 << 20
_FORK_DEPTH = 16
_SMALL_BYTES = 4 << 20
_EXPORT_BYTES = 256 << 20
# File systems may round times to whole seconds.
_ROUNDING_S = 1.0
_TITLE_LENGTH = 200
_PARENT_LEVELS = 4


def read_facts(reader: str, path: str, *, native_id: str = "", agent: str = "") -> Facts:
    """The facts of one native session, which may still be growing.

    `path` is a session's file, a database (then `native_id` chooses, else its newest session), or a
    folder under which sessions lie, such as a copied home (then `native_id`, else the newest).
    `agent` overrides the reader's idea of whose session it is. Output that no packet quotes is left out.
    Raises RelayError where nothing can be read, ConfigurationError for an unknown reader.
    """
    known = get_reader(reader)
    if os.path.isdir(path):
        path = _find_in_folder(known, path, native_id)
    facts = trim_facts(known.read(_read_source(known, path, native_id)))
    return replace(facts, agent=agent) if agent else facts


def get_reader(name: str) -> Reader:
    """The reader called `name`; raises ConfigurationError for an unknown one."""
    reader = READERS.get(name)
    if reader is None:
        known = ", ".join(sorted(READERS))
        raise ConfigurationError(f"there is no transcript reader {name}", hint=f"Known are {known}.")
    return reader


def find_transcript(
    spec: Transcript,
    *,
    native_id: str = "",
    cwd: str,
    since: datetime | None = None,
    home: str,
    environ: Mapping[str, str],
) -> NativeSession | None:
    """The session called `native_id`, else the newest one of `cwd` changed after `since`."""
    found = _iterate_sessions(spec, native_id, cwd=cwd, since=since, home=home, environ=environ)
    return next(found, None) or _find_deleted(spec, native_id, cwd=cwd, home=home, environ=environ)


def find_native_sessions(
    spec: Transcript, *, cwd: str, home: str, environ: Mapping[str, str], limit: int = 20
) -> list[NativeSession]:
    """The newest sessions of `cwd`, newest first."""
    found = _iterate_sessions(spec, "", cwd=cwd, since=None, home=home, environ=environ)
    return list(islice(found, limit))


def _iterate_sessions(
    spec: Transcript,
    native_id: str,
    *,
    cwd: str,
    since: datetime | None,
    home: str,
    environ: Mapping[str, str],
) -> Iterator[NativeSession]:
    reader = get_reader(spec.reader)
    place = LegPlace("", datetime.now(UTC), {"home": home, "cwd": cwd, "native_id": native_id}, environ)
    pattern = expand_path(f"{spec.folder}/{spec.pattern}", place)
    paths = [] if pattern is None else list(pattern.find())
    if reader.tables is not None:
        found = _iterate_rows(reader, paths)
    else:
        found = _iterate_files(reader, paths, native_id, cwd)
    for session in found:
        if native_id and session.native_id != native_id:
            continue
        if not native_id and not _is_same_folder(session.cwd, cwd):
            continue
        if since is not None and session.changed_at.timestamp() < since.timestamp() - _ROUNDING_S:
            if native_id:
                continue
            return  # they come newest first
        yield session


def _find_deleted(
    spec: Transcript, native_id: str, *, cwd: str, home: str, environ: Mapping[str, str]
) -> NativeSession | None:
    """A session whose file its agent deleted, by the log of prompts that outlives it."""
    reader = get_reader(spec.reader)
    if not reader.prompt_log or not native_id:
        return None
    place = LegPlace("", datetime.now(UTC), {"home": home, "cwd": cwd, "native_id": native_id}, environ)
    beside = os.path.dirname(os.path.dirname(spec.pattern))
    pattern = expand_path(os.path.join(spec.folder, beside, reader.prompt_log), place)
    for changed_at, path in _list_newest([] if pattern is None else list(pattern.find()), _PEEKED_FILES):
        prompts = [entry for entry in _read_prompts(reader, path) if entry.get("sessionId") == native_id]
        if prompts:
            peek = Peek(native_id=native_id, title=str(prompts[0].get("message") or ""))
            return _build_session(peek, path, _read_root_mark(reader, path), changed_at)
    return None


def _iterate_files(reader: Reader, paths: list[str], native_id: str, cwd: str) -> Iterator[NativeSession]:
    """The sessions of `paths`, newest first; a file's name holds the id, or its beginning."""
    named = [path for path in paths if not native_id or native_id[:8] in os.path.basename(path)]
    for changed_at, path in _list_newest(named, _PEEKED_FILES):
        marked = _read_root_mark(reader, path)
        if not native_id and marked and not _is_same_folder(marked, cwd):
            continue
        try:
            peek = _peek(reader, path)
        except RelayError:
            continue  # gone or closed to us since it was listed
        if peek.is_main:
            yield _build_session(peek, path, marked or peek.cwd, changed_at)


def _iterate_rows(reader: Reader, paths: list[str]) -> Iterator[NativeSession]:
    if reader.tables is None:
        return
    columns = reader.tables.columns
    for _, path in _list_newest(paths, _PEEKED_FILES):
        try:
            rows = list_rows(path, reader.tables)
        except RelayError:
            continue
        for row in rows:
            changed_at = parse_moment(row.get(columns["updated"]))
            peek = Peek(
                native_id=str(row.get(columns["native_id"]) or ""),
                title=str(row.get(columns["title"]) or ""),
            )
            cwd = str(row.get(columns["cwd"]) or "")
            if changed_at is not None:
                yield _build_session(peek, path, cwd, changed_at)


def _build_session(peek: Peek, path: str, cwd: str, changed_at: datetime) -> NativeSession:
    title = " ".join(peek.title[:_TITLE_LENGTH].split())
    return NativeSession(path, peek.native_id, cwd, title, changed_at, peek.started_at)


def _list_newest(paths: list[str], limit: int) -> list[tuple[datetime, str]]:
    dated = []
    for path in paths:
        try:
            dated.append((os.stat(path).st_mtime, path))
        except OSError:
            continue
    return [(datetime.fromtimestamp(at, UTC), path) for at, path in heapq.nlargest(limit, dated)]


def _is_same_folder(one: str, other: str) -> bool:
    return bool(one) and (one == other or os.path.realpath(one) == os.path.realpath(other))


def _peek(reader: Reader, path: str) -> Peek:
    return reader.peek(read_beginning(path, lines=_PEEKED_LINES, limit_bytes=_PEEKED_BYTES))


def _read_root_mark(reader: Reader, path: str) -> str:
    """The working folder, where a file beside the sessions' folder names it."""
    if not reader.root_mark:
        return ""
    mark = read_small(os.path.join(_beside(path), reader.root_mark), limit_bytes=_SMALL_BYTES)
    return os.fsdecode(mark).strip() if mark else ""


def _beside(path: str) -> str:
    """The folder that holds the sessions' folder and what is kept beside it."""
    folder = os.path.dirname(os.path.abspath(path))
    return folder if os.path.basename(path).startswith("logs") else os.path.dirname(folder)


def _find_in_folder(reader: Reader, folder: str, native_id: str) -> str:
    """The file under `folder` that holds the session; raises RelayError where none does."""
    for pattern in reader.patterns:
        found = glob.glob(os.path.join(glob.escape(folder), pattern), recursive=True, include_hidden=True)
        newest = _list_newest([path for path in found if os.path.isfile(path)], _PEEKED_FILES)
        for _, path in newest:
            if reader.tables is not None or _names_session(reader, path, native_id):
                return path
    raise RelayError(
        f"there is no session {native_id} in {folder}" if native_id else f"there is no session in {folder}",
        hint="Name the session's own file.",
    )


def _names_session(reader: Reader, path: str, native_id: str) -> bool:
    if reader.prompt_log and os.path.basename(path) == reader.prompt_log:
        return True
    peek = _peek(reader, path)
    return peek.is_main and (not native_id or peek.native_id == native_id)


def _read_source(reader: Reader, path: str, native_id: str) -> Source:
    if reader.tables is not None:
        if is_database(path):
            return read_tables(path, reader.tables, native_id)
        return _read_export(reader, path)
    prompts = _read_prompts(reader, path)
    is_log = bool(reader.prompt_log) and os.path.basename(path) == reader.prompt_log
    if not os.path.exists(path) and not prompts:
        raise cannot_read(path, FileNotFoundError(2, "no such file"))
    if not native_id and prompts and (is_log or not os.path.exists(path)):
        native_id = str(prompts[-1].get("sessionId") or "")
    return Source(
        place=path,
        native_id=native_id,
        cwd=_read_root_mark(reader, path),
        lines=iterate_lines(path) if os.path.exists(path) and not is_log else (),
        ancestors=() if is_log or not os.path.exists(path) else tuple(_find_ancestors(reader, path)),
        prompts=prompts,
    )


def _read_export(reader: Reader, path: str) -> Source:
    data = read_small(path, limit_bytes=_EXPORT_BYTES)
    try:
        source = reader.unpack(json.loads(data)) if data and reader.unpack else Source()
    except (ValueError, RecursionError):
        source = Source()
    if source.session is None:
        raise RelayError(f"{path} holds no session", hint="Name the database or an exported session.")
    return replace(source, place=path)


def _read_prompts(reader: Reader, path: str) -> tuple[Mapping[str, object], ...]:
    """The log of prompts that outlives deleted sessions."""
    if not reader.prompt_log:
        return ()
    data = read_small(os.path.join(_beside(path), reader.prompt_log), limit_bytes=_SMALL_BYTES)
    try:
        entries = json.loads(data) if data else []
    except (ValueError, RecursionError):
        return ()
    return tuple(entry for entry in entries if isinstance(entry, dict)) if isinstance(entries, list) else ()


def _find_ancestors(reader: Reader, path: str) -> list[Ancestor]:
    """What a forked session goes on from, oldest first; a parent that is gone ends the line."""
    found: list[Ancestor] = []
    seen = {os.path.abspath(path)}
    fork: Fork | None = _peek(reader, path).fork
    while fork is not None and len(found) < _FORK_DEPTH:
        parent = _find_parent(path, fork.native_id)
        if parent is None or os.path.abspath(parent) in seen:
            break
        seen.add(os.path.abspath(parent))
        found.insert(0, Ancestor(iterate_lines(parent), parent, fork.before))
        fork, path = _peek(reader, parent).fork, parent
    return found


def _find_parent(path: str, native_id: str) -> str | None:
    """The file of the session `native_id`, in the same folder or in folders as deep nearby."""
    folder, below = os.path.dirname(os.path.abspath(path)), ""
    for _ in range(_PARENT_LEVELS):
        name = f"{below}*{glob.escape(native_id)}*{os.path.splitext(path)[1]}"
        matches = sorted(glob.glob(os.path.join(glob.escape(folder), name)))
        if matches:
            return matches[0]
        folder, below = os.path.dirname(folder), f"*/{below}"
    return None
