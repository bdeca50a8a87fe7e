"""What was typed while an agent worked: kept in order, on disk, until its turn has begun."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from agent_relay.domain.errors import RelayError
from agent_relay.domain.ulid import is_ulid
from agent_relay.system.clock import SystemClock, create_ulid
from agent_relay.system.files import read_bounded, write_atomic
from agent_relay.system.locks import take_lock

_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Message:
    """What was typed, by an id: a daemon that is asked twice tells by it that it is the same."""

    id: str
    text: str


NOTHING = Message("", "")


class TypedAhead:
    """Messages in order, the oldest first. `changed` is called after every change.

    They stand in a file that only the user can read: a shell that is killed loses none of them.
    """

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._messages: list[Message] = []
        self._lock = take_lock(f"{path}.lock")

    def __len__(self) -> int:
        """How many wait."""
        return len(self._messages)

    def __iter__(self) -> Iterator[str]:
        """The messages' texts, the oldest first."""
        return iter([message.text for message in self._messages])

    @property
    def first(self) -> Message:
        """The message that is sent next; `NOTHING` for none."""
        return self._messages[0] if self._messages else NOTHING

    def add(self, text: str) -> None:
        """`text` is the last message now."""
        self._messages.append(_name(text))
        self._keep()

    def put_first(self, text: str) -> None:
        """`text` is sent before all the others."""
        self._messages.insert(0, _name(text))
        self._keep()

    def drop(self, message_id: str) -> None:
        """The message of that id is somebody else's now; harmless where none waits."""
        self._messages = [message for message in self._messages if message.id != message_id]
        self._keep()

    def take_last(self) -> str:
        """The text of the newest message, which waits no longer; empty for none."""
        message = self._messages.pop() if self._messages else NOTHING
        self._keep()
        return message.text

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
                kept = [[message.id, message.text] for message in self._messages]
                write_atomic(self._path, json.dumps(kept).encode(), durable=False)
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


def _name(text: str) -> Message:
    return Message(create_ulid(SystemClock()), text)


def _read(path: str) -> Sequence[Message] | None:
    """The messages of a file; `None` where they cannot be read now, and should stay."""
    try:
        found = json.loads(read_bounded(path, limit_bytes=_LIMIT_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    except (OSError, RelayError):
        return None
    read = [_parse(entry) for entry in found] if isinstance(found, list) else []
    return [message for message in read if message is not None]


def _parse(entry: object) -> Message | None:
    """A message as it is kept, or as it was before messages had ids; `None` for anything else."""
    match entry:
        case [str(message_id), str(text)] if is_ulid(message_id):
            return Message(message_id, text)
        case str(text):
            return _name(text)
        case _:
            return None


def _remove(path: str) -> None:
    for name in (path, f"{path}.lock"):
        _unlink(name)


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
