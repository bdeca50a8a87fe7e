"""The history of what was typed in all shells of the user: private, without secrets, bounded."""

import json
import os
from collections.abc import Callable, Iterable
from contextlib import suppress

from prompt_toolkit.history import History

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import read_handle, write_atomic
from agent_relay.system.disk.locks import append_line, open_alone
from agent_relay.system.disk.regular_files import open_regular

_LIMIT_BYTES = 16 << 20
_KEPT_BYTES = 8 << 20
_MOST_ENTRIES = 2000
_LONGEST = 20_000


class TypedHistory(History):
    """The entries of the file at `path`, mode 0600; `redact` is applied to what is written there."""

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._path = path
        self._redact = redact

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, the newest first; skip lines that are no entries."""
        try:
            lines, is_whole = _read_newest(self._path)
            if len(lines) > 2 * _MOST_ENTRIES or not is_whole:
                lines = _shorten_file(self._path)
        except (OSError, RelayError):
            return []
        entries = [_parse(line) for line in reversed(lines)]
        return [entry for entry in entries if entry]

    def store_string(self, string: str) -> None:
        """Append the entry to the file, unless it is too long or the file cannot be written."""
        if len(string) > _LONGEST:
            return
        with suppress(RelayError):
            append_line(self._path, json.dumps(self._redact(string)).encode())


def _read_newest(path: str) -> tuple[list[bytes], bool]:
    """Return the newest lines of the file, and whether they are all. Raise OSError or RelayError."""
    handle = open_regular(path)
    try:
        size = os.fstat(handle).st_size
        begin = max(0, size - _KEPT_BYTES) if size > _LIMIT_BYTES else 0
        data = read_handle(handle, path, limit_bytes=begin + _LIMIT_BYTES, begin=begin)
    finally:
        os.close(handle)
    return data.split(b"\n"), begin == 0


def _shorten_file(path: str) -> list[bytes]:
    """Cut the file to its newest lines and return them; what another shell adds meanwhile comes after them.

    Raises OSError or RelayError if the file cannot be read.
    """
    handle = open_alone(path)
    try:
        lines = _read_newest(path)[0][-_MOST_ENTRIES:]
        with suppress(RelayError):
            write_atomic(path, b"\n".join(lines), durable=False)
        return lines
    finally:
        os.close(handle)


def _parse(line: bytes) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""
