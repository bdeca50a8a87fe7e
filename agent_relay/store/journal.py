"""Write and read a session's journal: append-only lines with one owner, whole or absent after any crash.

Reading takes no lock and changes nothing; `JournalTail` follows a journal another process writes, and reads
only what was written since the last time.
"""

import json
import os
import threading
from datetime import datetime
from typing import Self

from agent_relay.domain.errors import RelayError, StaleOwnerError, UntrustedDataError
from agent_relay.domain.events.codec import parse_event, render_event
from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.protocol.quick_json import parse_line
from agent_relay.domain.session import Session
from agent_relay.session.fold import ImpossibleEventError, fold_events
from agent_relay.store.append_only_file import AppendOnlyFile
from agent_relay.system.disk.files import read_bounded, read_handle
from agent_relay.system.disk.regular_files import open_regular

LIMIT_BYTES = 256 << 20
_HINT = "Something else changed the file; move the session's folder away to go on without it."


def read_events(path: str) -> list[Event]:
    """Return the events of the journal at `path` without taking a lock; empty if there is no file.

    What follows the last newline was never written whole and is left out. Raises UntrustedDataError naming
    the line that is not an event, RelayError if it cannot be read.
    """
    try:
        data = read_bounded(path, limit_bytes=LIMIT_BYTES)
    except FileNotFoundError:
        return []
    return parse_lines(data[: data.rfind(b"\n") + 1], path)


def read_session(path: str) -> Session | None:
    """Return the session the journal at `path` describes, `None` if it has no whole line.

    Raises UntrustedDataError if the journal contradicts itself, and what `read_events` raises.
    """
    try:
        return fold_events(read_events(path))
    except ImpossibleEventError as error:
        raise UntrustedDataError(f"{path} contradicts itself: {error}", hint=_HINT) from None


class Journal:
    """The journal at `path`, owned: no other process can own it until this one closes it or dies.

    `events` are those found on opening; `generation` is the highest generation written. A torn last line is
    cut. Raises UntrustedDataError naming a line that is not an event, StaleOwnerError if another process
    owns the journal, RelayError if the file cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._turn = threading.Lock()
        self._lines = AppendOnlyFile(path, limit_bytes=LIMIT_BYTES)
        try:
            self.events = parse_lines(self._lines.found, path)
            self._lines.accept()
        except RelayError:
            self._lines.close()
            raise
        self._count = len(self.events)
        self.generation = max((event.generation for event in self.events), default=0)

    def append(self, body: Body, *, at: datetime, generation: int, durable: bool) -> Event:
        """Write the event as the next line and return it; with `durable` it then survives a power cut.

        Raises StaleOwnerError, with nothing written, if a higher generation has already written. Raises
        RelayError if the disk refuses (then the journal ends as before) or the journal is closed or was
        removed.
        """
        with self._turn:
            if generation < self.generation:
                raise StaleOwnerError(
                    f"generation {generation} may not write to {self.path}: "
                    f"generation {self.generation} owns the session"
                )
            event = Event(self._count + 1, at, generation, body)
            line = json.dumps(render_event(event), separators=(",", ":")).encode() + b"\n"
            self._lines.append(line, durable=durable)
            self._count = event.number
            self.generation = generation
            return event

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._lines.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def parse_lines(data: bytes, path: str, *, known: int = 0) -> list[Event]:
    """Parse whole lines that follow `known` others. Raise UntrustedDataError naming one that is no event."""
    events: list[Event] = []
    for number, line in enumerate(data.split(b"\n")[:-1], known + 1):
        try:
            found = parse_line(line)
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
        hint=hint or _HINT,
    )


class JournalTail:
    """Follows the journal at `path`, which need not exist yet; takes no lock and changes nothing."""

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
            handle = open_regular(self.path)
            try:
                found = os.fstat(handle)
                goes_on = (found.st_dev, found.st_ino) == self._file and found.st_size >= self._offset
                begin, known = (self._offset, self._count) if goes_on else (0, 0)
                self._file = (0, 0)
                data = read_handle(handle, self.path, limit_bytes=LIMIT_BYTES, begin=begin)
            finally:
                os.close(handle)
        except FileNotFoundError:
            self._file = (0, 0)
            raise
        except OSError as error:
            raise RelayError(f"cannot read {self.path}: {error.strerror}") from error
        whole = data[: data.rfind(b"\n") + 1]
        events = parse_lines(whole, self.path, known=known)
        self._file = found.st_dev, found.st_ino
        self._offset, self._count = begin + len(whole), known + len(events)
        return goes_on, events
