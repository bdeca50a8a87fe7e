"""Read a session that an agent keeps itself into facts."""

import glob
import heapq
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.facts import Facts
from agent_relay.domain.values import replace
from agent_relay.packet.extract.quotable import trim_facts
from agent_relay.sources import transcript_files as files
from agent_relay.transcripts import fact_reading as reading
from agent_relay.transcripts.fact_readers import READERS

# Files looked into, newest first, before a search gives up; a folder's own session is among the newest.
PEEKED_FILES = 500
_PEEKED_LINES = 60
_PEEKED_BYTES = 16 << 20
_FORK_DEPTH = 16
_SMALL_BYTES = 4 << 20
_EXPORT_BYTES = 256 << 20
_PARENT_LEVELS = 4


def read_facts(reader: str, path: str, *, native_id: str = "", agent: str = "") -> Facts:
    """Read the facts of one native session, which may still be growing.

    `path` is a session's file, a database (then `native_id` chooses, else its newest session), or a
    folder that contains sessions, such as a copied home (then `native_id`, else the newest).
    `agent` replaces the agent's name that the reader finds. Output that no packet quotes is left out.
    Raises RelayError if nothing can be read, ConfigurationError for an unknown reader.
    """
    return trim_facts(read_whole_facts(reader, path, native_id=native_id, agent=agent))


def read_whole_facts(reader: str, path: str, *, native_id: str = "", agent: str = "") -> Facts:
    """Read facts like `read_facts`, but with the output of every command."""
    known = get_reader(reader)
    if os.path.isdir(path):
        path = _find_in_folder(known, path, native_id)
    facts = known.read(_read_source(known, path, native_id))
    return replace(facts, agent=agent) if agent else facts


def get_reader(name: str) -> reading.TranscriptReader:
    """Return the reader called `name`; raise ConfigurationError for an unknown one."""
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
        ancestors=() if is_log or not os.path.exists(path) else tuple(find_ancestors(reader, path)),
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


def find_ancestors(reader: reading.TranscriptReader, path: str) -> list[reading.Ancestor]:
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
