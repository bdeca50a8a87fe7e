"""A session's journal on disk: append-only lines, one owner at a time, whole or absent after any crash."""

import errno
import fcntl
import json
import os
import threading
from datetime import datetime
from typing import Self

from agent_relay.domain.errors import RelayError, StaleOwnerError, UntrustedDataError
from agent_relay.domain.event import Body, Event
from agent_relay.domain.event_json import parse_event, render_event
from agent_relay.system.files import cannot_write, read_bounded, read_handle, sync_folder, write_all

LIMIT_BYTES = 256 << 20
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


def read_events(path: str) -> list[Event]:
    """The events of the journal at `path`, for those who only read: takes no lock, changes nothing.

    What follows the last newline was never written whole and is left out. Empty where there is no file.
    Raises UntrustedDataError naming the line that is not an event, RelayError where it cannot be read.
    """
    try:
        data = read_bounded(path, limit_bytes=LIMIT_BYTES)
    except FileNotFoundError:
        return []
    return _parse_lines(data[: data.rfind(b"\n") + 1], path)


class Journal:
    """The journal at `path`, owned: no other process can own it until this one closes it or dies.

    `events` are those found on opening; `generation` is the highest generation written. A torn last line
    is cut. Raises UntrustedDataError naming a line that is not an event, StaleOwnerError where another
    process owns the journal, RelayError where the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._turn = threading.Lock()
        self._why_closed = ""
        try:
            self._handle = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            self._take()
            data = read_handle(self._handle, path, limit_bytes=LIMIT_BYTES)
            self._size = data.rfind(b"\n") + 1
            self.events = _parse_lines(data[: self._size], path)
            if self._size < len(data):
                os.ftruncate(self._handle, self._size)
        except OSError as error:
            os.close(self._handle)
            raise cannot_write(path, error) from error
        except RelayError:
            os.close(self._handle)
            raise
        self._folder_synced = self._size > 0
        self._count = len(self.events)
        self.generation = max((event.generation for event in self.events), default=0)

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        """The event, written as the next line; with `durable` it has survived a power cut as well.

        Raises StaleOwnerError, with nothing written, where a higher generation has already written.
        Raises RelayError where the disk refuses (then the journal ends as before) or the journal is
        closed or was removed.
        """
        with self._turn:
            if self._why_closed:
                raise RelayError(f"cannot write {self.path}: {self._why_closed}")
            if generation < self.generation:
                raise StaleOwnerError(
                    f"generation {generation} may not write to {self.path}: "
                    f"generation {self.generation} owns the session"
                )
            event = Event(self._count + 1, at, generation, body)
            self._write(
                json.dumps(render_event(event), separators=(",", ":")).encode() + b"\n", durable=durable
            )
            self._count = event.number
            self.generation = generation
            return event

    def close(self) -> None:
        """Gives the journal up; harmless when repeated."""
        with self._turn:
            if not self._why_closed:
                self._why_closed = "it is closed"
                os.close(self._handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StaleOwnerError(
                f"another process owns {self.path}",
                hint="Is a second daemon running? See: agent-relay daemon status",
            ) from None

    def _write(self, line: bytes, *, durable: bool) -> None:
        try:
            _check_named(self._handle)
            write_all(self._handle, line)
            if durable:
                os.fdatasync(self._handle)
                if not self._folder_synced:
                    sync_folder(os.path.dirname(self.path) or ".")
                    self._folder_synced = True
        except OSError as error:
            self._roll_back()
            raise cannot_write(self.path, error) from error
        self._size += len(line)

    def _roll_back(self) -> None:
        """Only the owner appends, so cutting back to the known size removes nobody else's line."""
        try:
            os.ftruncate(self._handle, self._size)
        except OSError as error:
            self._why_closed = f"part of a line could not be taken back ({error.strerror})"
            os.close(self._handle)


def _check_named(handle: int) -> None:
    if os.fstat(handle).st_nlink == 0:
        raise OSError(errno.ENOENT, "it was removed while in use")


def _parse_lines(data: bytes, path: str) -> list[Event]:
    events: list[Event] = []
    for number, line in enumerate(data.split(b"\n")[:-1], 1):
        try:
            found = json.loads(line)
            event = parse_event(found if isinstance(found, dict) else {})
        except (ValueError, RecursionError):
            raise _untrusted(path, number, "it is not JSON") from None
        except UntrustedDataError as error:
            raise _untrusted(path, number, error.sentence, hint=error.hint) from None
        if event.number != number:
            raise _untrusted(path, number, f"it says it is line {event.number}")
        if event.at.tzinfo is None:
            raise _untrusted(path, number, "its time has no zone")
        events.append(event)
    return events


def _untrusted(path: str, number: int, why: str, *, hint: str = "") -> UntrustedDataError:
    return UntrustedDataError(
        f"line {number} of {path} cannot be trusted: {why}",
        hint=hint or "Something else changed the file; move the session's folder away to go on without it.",
    )
