"""Create, open and find the journals of sessions through the user's index, and mend that index.

An entry that was removed is written again while its session is active. The folder of each leg also records
which session the leg belongs to: that remains if the index is lost.
"""

import contextlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime

from agent_relay.domain.errors import ConfigurationError, RelayError, StaleOwnerError
from agent_relay.domain.events.codec import parse_event
from agent_relay.domain.events.session import Body, Event, SessionCreated
from agent_relay.domain.names import find_root_above, get_journal_path, is_ulid
from agent_relay.domain.session import Session
from agent_relay.store.journal import Journal
from agent_relay.store.project import make_session_folder, secure_session
from agent_relay.store.session_index import find_root, has_entry, unmark_ended, write_entry
from agent_relay.system.disk.files import cannot_write, read_object, sync_folder, write_atomic
from agent_relay.system.disk.folders import Folders

_log = logging.getLogger(__name__)
_NAME = "session.json"
_LIMIT_BYTES = 64 << 10


def write_leg_owner(leg_folder: str, session: str, *, root: str, cwd: str) -> None:
    """Write into the leg's folder which session it belongs to. Raise RelayError if the disk refuses."""
    note = json.dumps({"session": session, "root": root, "cwd": cwd}).encode()
    write_atomic(os.path.join(leg_folder, _NAME), note, durable=False)


def find_leg_session(legs: str, leg: str) -> str:
    """Return the session of the living leg `leg`, whose folder is below `legs`; empty if unknown."""
    owner = _read_owner(os.path.join(legs, leg)) if is_ulid(leg) else None
    return owner[0] if owner is not None else ""


def _list_leg_owners(legs: str) -> list[tuple[str, str, str]]:
    """Return (session, root, cwd) of every leg below `legs` that records it; a session once for each leg."""
    try:
        names = [name for name in os.listdir(legs) if is_ulid(name)]
    except OSError:
        return []
    owners = (_read_owner(os.path.join(legs, name)) for name in sorted(names))
    return [owner for owner in owners if owner is not None]


def _read_owner(leg_folder: str) -> tuple[str, str, str] | None:
    note = read_object(os.path.join(leg_folder, _NAME), limit_bytes=_LIMIT_BYTES)
    found = (note.get(key) for key in ("session", "root", "cwd"))
    session, root, cwd = (value if isinstance(value, str) else "" for value in found)
    return (session, root, cwd) if is_ulid(session) and os.path.isabs(root) else None


class SessionJournal:
    """The journal of one session, owned, and written again if it was deleted.

    `git clean -fdx` deletes what git ignores, our folder included, while its agents work: all events are
    then written again, whole or not at all, before the next one is. `sync` makes the names in a folder
    survive a power cut; if it fails, it is tried again before the next line. `generation` is the highest
    written. Raises what `Journal` does.
    """

    def __init__(self, path: str, *, sync: Callable[[str], None] = sync_folder) -> None:
        self.path = path
        self._journal = Journal(path, parse_event)
        self.generation = max((event.generation for event in self.events), default=0)
        self._sync = sync
        self._unsynced = ""

    @property
    def events(self) -> Sequence[Event]:
        """Everything written so far, what was found on opening included."""
        return self._journal.events

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        """Write the event as the next line and return it; with `durable` it then survives a power cut.

        Raises StaleOwnerError, with nothing written, if a higher generation has already written. Raises
        RelayError if the disk refuses (then the journal ends as before) or the journal is closed.
        """
        if generation < self.generation:
            raise StaleOwnerError(
                f"generation {generation} may not write to {self.path}: "
                f"generation {self.generation} owns the session"
            )
        event = Event(len(self.events) + 1, at, generation, body)
        try:
            self._sync_name()
            self._journal.append(event, durable=durable)
        except RelayError:
            root = find_root_above(self.path)
            if os.path.lexists(self.path) or not os.path.isdir(root):
                raise
            self._restore(root)
            self._journal.append(event, durable=durable)
        self.generation = generation
        return event

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()

    def _restore(self, root: str) -> None:
        """Write the deleted journal again where it was. Raise RelayError; a power cut may then undo it."""
        first = self.events[0].body if self.events else None
        if not isinstance(first, SessionCreated):
            raise RelayError(f"{self.path} was deleted")
        folder = make_session_folder(root, first.session)
        temporary = f"{folder}/.journal-{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        fresh = Journal(temporary, parse_event)
        is_placed = False
        try:
            for event in self.events:
                fresh.append(event, durable=event is self.events[-1])
            os.rename(temporary, self.path)
            is_placed = True
        except OSError as error:
            raise cannot_write(self.path, error) from error
        finally:
            if not is_placed:
                fresh.close()
        _log.warning("journal-written-again session=%s events=%d", first.session, len(self.events))
        fresh.path = self.path
        self._journal.close()
        self._journal, self._unsynced = fresh, folder
        self._sync_name()

    def _sync_name(self) -> None:
        """Make the name of a rewritten journal survive a power cut. Raise RelayError on failure."""
        if not self._unsynced:
            return
        try:
            self._sync(self._unsynced)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self._unsynced = ""


def create_journal(folders: Folders, created: SessionCreated, *, at: datetime) -> SessionJournal:
    """Create the new session's journal with its first line and name it in the index. Raise RelayError."""
    make_session_folder(created.root, created.session)
    journal = SessionJournal(get_journal_path(created.root, created.session))
    is_indexed = False
    try:
        journal.append(created, at=at, generation=0, durable=True)
        write_entry(folders.sessions, created.session, root=created.root, cwd=created.cwd)
        is_indexed = True
    finally:
        if not is_indexed:
            journal.close()
    return journal


def open_journal(folders: Folders, session_id: str, root: str) -> SessionJournal:
    """Open the journal of a continued session and own it.

    Raises RelayError if its folder is reached through a link, or the journal cannot be trusted or opened.
    """
    secure_session(root, session_id)
    # Before a line is written: a crash behind it must find a session that the next start looks at.
    unmark_ended(folders.sessions, session_id)
    return SessionJournal(get_journal_path(root, session_id))


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


def ensure_leg_sessions_indexed(folders: Folders) -> None:
    """Name the sessions of all remaining legs in the index, as far as the legs' folders record them."""
    for session_id, root, cwd in _list_leg_owners(folders.legs):
        if not has_entry(folders.sessions, session_id):
            write_entry(folders.sessions, session_id, root=root, cwd=cwd)
            _log.warning("index-entry-written-again session=%s", session_id)


def find_journal(folders: Folders, session_id: str) -> str:
    """Return the path of the journal of a session in the user's index; empty for one it does not name."""
    root = find_root(folders.sessions, session_id)
    return get_journal_path(root, session_id) if root else ""
