"""What was typed while an agent worked: kept in order, on disk, until its turn has begun."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import read_bounded, write_atomic
from agent_relay.system.locks import take_lock

_LIMIT_BYTES = 64 << 20


class TypedAhead:
    """Messages in order, the oldest first. `changed` is called after every change.

    They stand in a file that only the user can read: a shell that is killed loses none of them.
    """

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._messages: list[str] = []
        self._lock = take_lock(f"{path}.lock")

    def __len__(self) -> int:
        """How many wait."""
        return len(self._messages)

    def __iter__(self) -> Iterator[str]:
        """The messages, the oldest first."""
        return iter(tuple(self._messages))

    @property
    def first(self) -> str:
        """The message that is sent next; empty for none."""
        return self._messages[0] if self._messages else ""

    def add(self, message: str) -> None:
        """`message` is the last one now."""
        self._messages.append(message)
        self._keep()

    def put_first(self, message: str) -> None:
        """`message` is sent before all the others."""
        self._messages.insert(0, message)
        self._keep()

    def drop_first(self) -> None:
        """The first message is somebody else's now."""
        del self._messages[:1]
        self._keep()

    def take_last(self) -> str:
        """The newest message, which waits no longer; empty for none."""
        message = self._messages.pop() if self._messages else ""
        self._keep()
        return message

    def take_over(self, folder: str) -> int:
        """How many messages shells that are gone have left in `folder`, which wait here now."""
        before = len(self._messages)
        for name in sorted(_list_names(folder)):
            path = os.path.join(folder, name)
            if path == self._path:
                continue
            lock = take_lock(f"{path}.lock")
            if lock is None:
                continue
            try:
                found = _read(path)
                if found is None:
                    continue
                self._messages += found
                if not found or self._keep():
                    _remove(path)
            finally:
                os.close(lock)
        return len(self._messages) - before

    def close(self) -> None:
        """Whoever opens the next shell finds what is left."""
        if not self._messages:
            _remove(self._path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _keep(self) -> bool:
        """Whether the file says what waits; what cannot be written is still sent."""
        try:
            if self._messages:
                write_atomic(self._path, json.dumps(self._messages).encode(), durable=False)
            else:
                # No room is needed to say that nothing waits, and no secret stays behind.
                _unlink(self._path)
        except RelayError:
            return False
        finally:
            self._changed()
        return True


def _list_names(folder: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if name.endswith(".json")]
    except OSError:
        return []


def _read(path: str) -> list[str] | None:
    """The messages of a file; `None` where they cannot be read now, and should stay."""
    try:
        found = json.loads(read_bounded(path, limit_bytes=_LIMIT_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    except (OSError, RelayError):
        return None
    return [message for message in found if isinstance(message, str)] if isinstance(found, list) else []


def _remove(path: str) -> None:
    for name in (path, f"{path}.lock"):
        _unlink(name)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
