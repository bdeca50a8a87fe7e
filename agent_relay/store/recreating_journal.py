"""Keep a session's journal for its host, and write it again if its folder was deleted meanwhile."""

import contextlib
import logging
import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body, Event, SessionCreated
from agent_relay.store.journal import Journal
from agent_relay.store.project import open_project, session_folder
from agent_relay.system.disk.files import cannot_write, sync_folder

_log = logging.getLogger(__name__)
_BELOW_ROOT = "/.agent-relay/sessions/"


class JournalWriter(Protocol):
    """What a host writes events to."""

    path: str

    @property
    def events(self) -> Sequence[Event]:
        """Everything written so far, what was found on opening included."""
        ...

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        """Write the event as the next line and return it. Raise RelayError, with nothing written."""
        ...

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        ...


class RecreatingJournal:
    """The session's journal, owned and written again if deleted.

    `git clean -fdx` deletes what git ignores, our folder included, while its agents work: all events are
    then written again, whole or not at all, before the next one is. `sync` makes the names in a folder
    survive a power cut; if it fails, it is tried again before the next line.
    """

    def __init__(self, journal: Journal, *, sync: Callable[[str], None] = sync_folder) -> None:
        self.path = journal.path
        self._journal = journal
        self._sync = sync
        self._unsynced = ""
        self._events = list(journal.events)

    @property
    def events(self) -> Sequence[Event]:
        """Everything written so far, what was found on opening included."""
        return self._events

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        """Write the event as the next line and return it; see `store.journal`."""
        try:
            self._sync_name()
            event = self._journal.append(body, at=at, generation=generation, durable=durable)
        except RelayError:
            if not self._was_deleted():
                raise
            self._restore()
            event = self._journal.append(body, at=at, generation=generation, durable=durable)
        self._events.append(event)
        return event

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()

    def _was_deleted(self) -> bool:
        root = self.path.partition(_BELOW_ROOT)[0]
        return not os.path.lexists(self.path) and os.path.isdir(root)

    def _restore(self) -> None:
        """Write the journal again where it was. Raise RelayError; a power cut may then undo it."""
        first = self._events[0].body
        if not isinstance(first, SessionCreated):
            raise RelayError(f"{self.path} was deleted")
        root = self.path.partition(_BELOW_ROOT)[0]
        folder = session_folder(open_project(root), first.session)
        temporary = f"{folder}/.journal-{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        fresh = Journal(temporary)
        try:
            for event in self._events:
                last = event is self._events[-1]
                fresh.append(event.body, at=event.at, generation=event.generation, durable=last)
            os.rename(temporary, self.path)
        except OSError as error:
            fresh.close()
            raise cannot_write(self.path, error) from error
        except RelayError:
            fresh.close()
            raise
        _log.warning("journal-written-again session=%s events=%d", first.session, len(self._events))
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
