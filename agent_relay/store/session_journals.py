"""Create, open and find the journals of sessions through the user's index, and mend that index.

An entry that was removed is written again while its session is active. The folder of each leg also records
which session the leg belongs to: that remains if the index is lost.
"""

import contextlib
import json
import logging
import os
from datetime import datetime

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.events.session import SessionCreated
from agent_relay.domain.session import Session
from agent_relay.domain.values.ulid import is_ulid
from agent_relay.store.journal import Journal
from agent_relay.store.project import open_project, secure_session, session_folder
from agent_relay.store.session_index import find_root, has_entry, unmark_ended, write_entry
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import Folders

_log = logging.getLogger(__name__)


_NAME = "session.json"
_LIMIT_BYTES = 64 << 10


def write_leg_owner(leg_folder: str, session: str, *, root: str, cwd: str) -> None:
    """Write into the leg's folder which session it belongs to. Raise RelayError if the disk refuses."""
    note = json.dumps({"session": session, "root": root, "cwd": cwd}).encode()
    write_atomic(os.path.join(leg_folder, _NAME), note, durable=False)


def list_leg_owners(legs: str) -> list[tuple[str, str, str]]:
    """Return (session, root, cwd) of every leg below `legs` that records it; a session once for each leg."""
    try:
        names = [name for name in os.listdir(legs) if is_ulid(name)]
    except OSError:
        return []
    owners = (_read_owner(os.path.join(legs, name)) for name in sorted(names))
    return [owner for owner in owners if owner is not None]


def _read_owner(leg_folder: str) -> tuple[str, str, str] | None:
    try:
        note = json.loads(read_bounded(os.path.join(leg_folder, _NAME), limit_bytes=_LIMIT_BYTES))
    except (RelayError, OSError, ValueError, RecursionError):
        return None
    found = [note.get(key) for key in ("session", "root", "cwd")] if isinstance(note, dict) else []
    session, root, cwd = (value if isinstance(value, str) else "" for value in (found or ("", "", "")))
    return (session, root, cwd) if is_ulid(session) and os.path.isabs(root) else None


def create_journal(folders: Folders, created: SessionCreated, *, at: datetime) -> Journal:
    """Create the new session's journal with its first line and name it in the index. Raise RelayError."""
    folder = session_folder(open_project(created.root), created.session)
    journal = Journal(f"{folder}/journal.jsonl")
    try:
        event = journal.append(created, at=at, generation=0, durable=True)
        write_entry(folders.sessions, created.session, root=created.root, cwd=created.cwd)
    except RelayError:
        journal.close()
        raise
    journal.events = [event]
    return journal


def open_journal(folders: Folders, session_id: str, root: str) -> Journal:
    """Open the journal of a continued session and own it.

    Raises RelayError if its folder is reached through a link, or the journal cannot be trusted or opened.
    """
    secure_session(root, session_id)
    # Before a line is written: a crash behind it must find a session that the next start looks at.
    unmark_ended(folders.sessions, session_id)
    return Journal(get_journal_path(root, session_id))


def ensure_indexed(folders: Folders, session: Session) -> None:
    """Name an active session in the index again if its entry was removed, with or without its folder.

    If the disk refuses, the next call tries again.
    """
    if has_entry(folders.sessions, session.id):
        return
    with contextlib.suppress(RelayError, ConfigurationError):
        write_entry(folders.sessions, session.id, root=session.root, cwd=session.cwd)
        unmark_ended(folders.sessions, session.id)
        _log.warning("index-entry-written-again session=%s", session.id)


def move_entry(folders: Folders, session_id: str, root: str) -> None:
    """Move the session's entry in the index to `root`. Raise RelayError if the disk refuses."""
    write_entry(folders.sessions, session_id, root=root, cwd=root)


def ensure_leg_sessions_indexed(folders: Folders) -> None:
    """Name the sessions of all remaining legs in the index, as far as the legs' folders record them."""
    for session_id, root, cwd in list_leg_owners(folders.legs):
        if not has_entry(folders.sessions, session_id):
            write_entry(folders.sessions, session_id, root=root, cwd=cwd)
            _log.warning("index-entry-written-again session=%s", session_id)


def find_journal(folders: Folders, session_id: str) -> str:
    """Return the path of the journal of a session in the user's index; empty for one it does not name."""
    root = find_root(folders.sessions, session_id)
    return get_journal_path(root, session_id) if root else ""


def get_journal_path(root: str, session_id: str) -> str:
    """Return the path of the session's journal."""
    return f"{root}/.agent-relay/sessions/{session_id}/journal.jsonl"
