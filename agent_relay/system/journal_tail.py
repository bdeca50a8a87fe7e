"""Reads along in a journal somebody else writes: only what was written since costs anything."""

import os

from agent_relay.domain.errors import RelayError
from agent_relay.domain.event import Event
from agent_relay.system.files import read_handle
from agent_relay.system.journal import LIMIT_BYTES, parse_lines
from agent_relay.system.regular_files import open_regular


class JournalTail:
    """The journal at `path`, which need not be there yet; takes no lock and changes nothing."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._offset = 0
        self._count = 0
        self._file = (0, 0)

    def read_on(self) -> tuple[bool, list[Event]]:
        """Whether the file is the one read so far, and the events after those; else all that it has.

        Raises FileNotFoundError where there is none, RelayError where it cannot be read or trusted; then
        it is read from its beginning next.
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
