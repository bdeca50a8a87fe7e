"""What was typed before, over all shells of the user: private, without secrets, bounded."""

import json
from collections.abc import Callable, Iterable
from contextlib import suppress

from prompt_toolkit.history import History

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import append_line, read_bounded, write_atomic

_LIMIT_BYTES = 16 << 20
_MOST = 2000
_LONGEST = 20_000


class TypedHistory(History):
    """The entries of the file at `path`, mode 0600; `redact` is applied to what goes there."""

    def __init__(self, path: str, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._path = path
        self._redact = redact

    def load_history_strings(self) -> Iterable[str]:
        """The entries, the newest first; lines that are no entries are passed over."""
        try:
            lines = read_bounded(self._path, limit_bytes=_LIMIT_BYTES).split(b"\n")
        except (OSError, RelayError):
            return []
        if len(lines) > 2 * _MOST:
            lines = lines[-_MOST:]
            with suppress(RelayError):
                write_atomic(self._path, b"\n".join(lines), durable=False)
        entries = [_parse(line) for line in reversed(lines)]
        return [entry for entry in entries if entry]

    def store_string(self, string: str) -> None:
        """The entry is in the file, unless it is too long or the file cannot be written."""
        if len(string) > _LONGEST:
            return
        with suppress(RelayError):
            append_line(self._path, json.dumps(self._redact(string)).encode())


def _parse(line: bytes) -> str:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    return found if isinstance(found, str) else ""
