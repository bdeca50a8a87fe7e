"""The user's index of sessions over repositories: where each one's folder stands."""

import json
import logging
import os
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.event import SessionCreated
from agent_relay.domain.ulid import is_ulid
from agent_relay.system.files import read_bounded, write_atomic
from agent_relay.system.folders import Folders, ensure_private
from agent_relay.system.journal import Journal
from agent_relay.system.project import open_project, session_folder

_log = logging.getLogger(__name__)
_LIMIT_BYTES = 64 << 10


def note_session(folders: Folders, created: SessionCreated) -> None:
    """The index names the session. Raises RelayError where the disk refuses."""
    ensure_private(folders.state)
    index = ensure_private(folders.sessions)
    entry = {"root": created.root, "cwd": created.cwd}
    write_atomic(f"{index}/{created.session}.json", json.dumps(entry).encode(), durable=False)


def create_journal(folders: Folders, created: SessionCreated, *, at: datetime) -> Journal:
    """The new session's journal with its first line, named by the index. Raises RelayError."""
    folder = session_folder(open_project(created.root), created.session)
    journal = Journal(f"{folder}/journal.jsonl")
    try:
        event = journal.append(created, at=at, generation=0, durable=True)
        note_session(folders, created)
    except RelayError:
        journal.close()
        raise
    journal.events = [event]
    return journal


def read_index(folder: str) -> dict[str, str]:
    """The root of every session whose entry can be read, oldest session first."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return {}
    except OSError as error:
        _log.warning("index-unreadable errno=%s", error.errno)
        return {}
    roots: dict[str, str] = {}
    for name in names:
        session_id = name.removesuffix(".json")
        if not is_ulid(session_id):
            continue
        try:
            entry = json.loads(read_bounded(f"{folder}/{name}", limit_bytes=_LIMIT_BYTES))
        except (RelayError, OSError, ValueError, RecursionError):
            entry = None
        root = entry.get("root") if isinstance(entry, dict) else None
        if isinstance(root, str) and os.path.isabs(root):
            roots[session_id] = root
        else:
            _log.warning("index-entry-unreadable session=%s", session_id)
    return roots


def get_journal_path(root: str, session_id: str) -> str:
    """Where the session's journal stands."""
    return f"{root}/.agent-relay/sessions/{session_id}/journal.jsonl"
