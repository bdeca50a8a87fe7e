"""A session's journal by its name in the user's index: made with its entry, or opened where that says."""

import contextlib
import logging
from datetime import datetime

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.event import SessionCreated
from agent_relay.domain.session import Session
from agent_relay.system.folders import Folders
from agent_relay.system.journal import Journal
from agent_relay.system.leg_owners import list_owners
from agent_relay.system.project import open_project, secure_session, session_folder
from agent_relay.system.session_index import find_root, has_entry, unmark_ended, write_entry

_log = logging.getLogger(__name__)


def create_journal(folders: Folders, created: SessionCreated, *, at: datetime) -> Journal:
    """The new session's journal with its first line, named by the index. Raises RelayError."""
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
    """The journal of a session that goes on, owned.

    Raises RelayError where its folder is reached through a link, or the journal cannot be trusted or opened.
    """
    secure_session(root, session_id)
    # Before a line is written: a crash behind it must find a session that the next start looks at.
    unmark_ended(folders.sessions, session_id)
    return Journal(get_journal_path(root, session_id))


def name_session(folders: Folders, session: Session) -> None:
    """The index names a session at work: somebody may have removed it, with or without its folder.

    A disk that refuses is asked again at the next occasion.
    """
    if has_entry(folders.sessions, session.id):
        return
    with contextlib.suppress(RelayError, ConfigurationError):
        write_entry(folders.sessions, session.id, root=session.root, cwd=session.cwd)
        unmark_ended(folders.sessions, session.id)
        _log.warning("index-entry-written-again session=%s", session.id)


def move_entry(folders: Folders, session_id: str, root: str) -> None:
    """The index has the session in `root` from now on. Raises RelayError."""
    write_entry(folders.sessions, session_id, root=root, cwd=root)


def name_owners(folders: Folders) -> None:
    """The index names the sessions of all legs that are left, as far as their folders say whose they are."""
    for session_id, root, cwd in list_owners(folders.legs):
        if not has_entry(folders.sessions, session_id):
            write_entry(folders.sessions, session_id, root=root, cwd=cwd)
            _log.warning("index-entry-written-again session=%s", session_id)


def find_journal(folders: Folders, session_id: str) -> str:
    """The path of the journal of a session in the user's index; empty for one it does not name."""
    root = find_root(folders.sessions, session_id)
    return get_journal_path(root, session_id) if root else ""


def get_journal_path(root: str, session_id: str) -> str:
    """Where the session's journal stands."""
    return f"{root}/.agent-relay/sessions/{session_id}/journal.jsonl"
