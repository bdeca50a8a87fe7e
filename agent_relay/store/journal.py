"""Write and read journals: append-only lines with one owner; set aside one that is unreadable."""

import errno
import json
import os
import threading
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from agent_relay.domain.errors import RelayError, StaleOwnerError, UntrustedDataError, WrongUseError
from agent_relay.domain.events.codec import JournalEvent, parse_event, render_event
from agent_relay.domain.events.session import Event
from agent_relay.domain.names import get_journal_path, get_session_folder, is_ulid
from agent_relay.domain.protocol.json_text import parse_line
from agent_relay.domain.session import Session
from agent_relay.session.fold import ImpossibleEventError, fold_events
from agent_relay.store.project import secure_session
from agent_relay.store.session_index import remove_entry
from agent_relay.system.disk import files
from agent_relay.system.disk.locks import open_alone

_LIMIT_BYTES = 256 << 20
_CHANGED = "Something else changed the file"
_COMPACT = (",", ":")
_E = TypeVar("_E", bound=JournalEvent)
_Parse = Callable[[Mapping[str, object]], _E]


class Journal(Generic[_E]):
    """The journal at `path`, owned: no other process can own it until this one closes it or dies.

    `events` are all its events, those found on opening first; `parse` reads one of them from its JSON, in
    which `separators` stand. Safe for several threads. A torn last line is cut. Raises UntrustedDataError
    naming a line that is not an event, StaleOwnerError if another process owns the journal, RelayError if
    the file cannot be opened.
    """

    def __init__(self, path: str, parse: _Parse[_E], *, separators: tuple[str, str] = _COMPACT) -> None:
        self.path = path
        self._separators = separators
        self._turn = threading.Lock()
        self._why_closed = ""
        self._handle = _own(path)
        is_read = False
        try:
            data = files.read_handle(self._handle, path, limit_bytes=_LIMIT_BYTES)
            self._size = data.rfind(b"\n") + 1
            self.events = _parse_lines(data[: self._size], path, parse)
            if self._size < len(data):
                os.ftruncate(self._handle, self._size)
            is_read = True
        except OSError as error:
            raise files.cannot_write(path, error) from error
        finally:
            if not is_read:
                os.close(self._handle)
        self._is_folder_synced = self._size > 0

    def append(self, event: _E, *, durable: bool) -> None:
        """Write the event as the next line; with `durable` it then survives a power cut.

        Raises RelayError if the disk refuses (then the journal ends as before), or it is closed or
        was removed.
        """
        line = render_line(event, separators=self._separators)
        with self._turn:
            if self._why_closed:
                raise RelayError(f"cannot write {self.path}: {self._why_closed}")
            try:
                _check_named(self._handle)
                files.write_all(self._handle, line)
                if durable:
                    self._sync()
            except OSError as error:
                self._roll_back()
                raise files.cannot_write(self.path, error) from error
            self._size += len(line)
            self.events.append(event)

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        with self._turn:
            if not self._why_closed:
                self._why_closed = "it is closed"
                os.close(self._handle)

    def _sync(self) -> None:
        os.fdatasync(self._handle)
        if not self._is_folder_synced:
            files.sync_folder(os.path.dirname(self.path) or ".")
            self._is_folder_synced = True

    def _roll_back(self) -> None:
        """Cut the file back to its known size; only the owner appends, so this removes no one else's line."""
        try:
            os.ftruncate(self._handle, self._size)
        except OSError as error:
            self._why_closed = f"part of a line could not be taken back ({error.strerror})"
            os.close(self._handle)


def render_line(event: JournalEvent, *, separators: tuple[str, str] = _COMPACT) -> bytes:
    """Render the event as a line of a journal."""
    return json.dumps(render_event(event), separators=separators).encode() + b"\n"


def _own(path: str) -> int:
    try:
        return open_alone(path, wait_s=0)
    except BlockingIOError:
        raise StaleOwnerError(
            f"another process owns {path}",
            hint="Is a second daemon running? See: agent-relay daemon status",
        ) from None
    except OSError as error:
        raise files.cannot_write(path, error) from error


def _check_named(handle: int) -> None:
    if os.fstat(handle).st_nlink == 0:
        raise OSError(errno.ENOENT, "it was removed while in use")


def read_journal(path: str, parse: _Parse[_E]) -> list[_E]:
    """Return the events of the journal at `path` without taking a lock; empty if there is no file.

    What follows the last newline was never written whole and is left out. Raises UntrustedDataError naming
    the line that is not an event, RelayError if it cannot be read.
    """
    try:
        data = files.read_bounded(path, limit_bytes=_LIMIT_BYTES)
    except FileNotFoundError:
        return []
    return _parse_lines(data[: data.rfind(b"\n") + 1], path, parse)


def read_events(path: str) -> list[Event]:
    """Return the events of the session's journal at `path`, as `read_journal` does."""
    return read_journal(path, parse_event)


def read_session(path: str) -> Session | None:
    """Return the session the journal at `path` describes, `None` if it has no whole line.

    Raises UntrustedDataError if the journal contradicts itself, and what `read_events` raises.
    """
    try:
        return fold_events(read_events(path))
    except ImpossibleEventError as error:
        raise UntrustedDataError(f"{path} contradicts itself: {error}", hint=_find_remedy(path)) from None


class JournalTail:
    """Follows the session's journal at `path`, which need not exist yet; takes no lock, changes nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset = 0
        self._count = 0
        self._file = (0, 0)

    def read_on(self) -> tuple[bool, list[Event]]:
        """Return (True, events after those read so far), or (False, all events) if the file is another one.

        Raises FileNotFoundError if there is none, RelayError if it cannot be read or trusted; then the next
        call reads it from its beginning.
        """
        try:
            handle = files.open_regular(self.path)
            try:
                found = os.fstat(handle)
                goes_on = (found.st_dev, found.st_ino) == self._file and found.st_size >= self._offset
                begin, known = (self._offset, self._count) if goes_on else (0, 0)
                self._file = (0, 0)
                data = files.read_handle(handle, self.path, limit_bytes=_LIMIT_BYTES, begin=begin)
            finally:
                os.close(handle)
        except FileNotFoundError:
            self._file = (0, 0)
            raise
        except OSError as error:
            raise RelayError(f"cannot read {self.path}: {error.strerror}") from error
        whole = data[: data.rfind(b"\n") + 1]
        events = _parse_lines(whole, self.path, parse_event, known=known)
        self._file = found.st_dev, found.st_ino
        self._offset, self._count = begin + len(whole), known + len(events)
        return goes_on, events


def _parse_lines(data: bytes, path: str, parse: _Parse[_E], *, known: int = 0) -> list[_E]:
    """Parse whole lines that follow `known` others. Raise UntrustedDataError naming one that is no event."""
    events: list[_E] = []
    for number, line in enumerate(data.split(b"\n")[:-1], known + 1):
        try:
            found = parse_line(line)
            event = parse(found if isinstance(found, dict) else {})
        except (ValueError, RecursionError):
            raise _untrusted(path, number, "it is not JSON") from None
        except UntrustedDataError as error:
            raise _untrusted(path, number, error.sentence, hint=error.hint) from None
        if event.number != number:
            raise _untrusted(path, number, f"it says it is line {event.number}")
        events.append(event)
    return events


def _untrusted(path: str, number: int, why: str, *, hint: str = "") -> UntrustedDataError:
    return UntrustedDataError(
        f"line {number} of {path} cannot be trusted: {why}", hint=hint or _find_remedy(path)
    )


def _find_remedy(path: str) -> str:
    """Return the hint for a damaged journal; a session's is put aside by its id."""
    folder = os.path.dirname(path)
    name = os.path.basename(folder)
    if os.path.basename(os.path.dirname(folder)) == "sessions" and is_ulid(name):
        return f"{_CHANGED}. Put the session aside: agent-relay doctor --put-aside {name}"
    return f"{_CHANGED}; move its folder away to go on without it."


_ASIDE = ".unreadable"


def find_damage(root: str, session: str) -> str:
    """Return why the session's journal cannot be continued; empty if it can, or if there is none."""
    path = get_journal_path(root, session)
    try:
        if read_session(path) is None and read_events(path):
            return f"{path} does not begin with a session"
    except RelayError as error:
        return error.sentence
    return ""


def set_aside(index: str, session: str, *, root: str) -> str:
    """Move the session's folder aside, whole and ignored by git, and return its path; it is no session then.

    Raise WrongUseError if its journal can be read, RelayError if it cannot be moved.
    """
    folder = get_session_folder(root, session)
    if not find_damage(root, session):
        raise WrongUseError(f"the journal of session {session} can be read, so it stays where it is")
    secure_session(root, session)
    aside = _find_free(f"{folder}{_ASIDE}")
    try:
        os.rename(folder, aside)
        files.sync_folder(os.path.dirname(folder))
    except OSError as error:
        raise files.cannot_write(aside, error) from error
    remove_entry(index, session)
    return aside


def _find_free(path: str) -> str:
    found, count = path, 1
    while os.path.lexists(found):
        found, count = f"{path}-{count}", count + 1
    return found
