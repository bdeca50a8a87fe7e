"""Messages typed while an agent works, in order and on disk, and why they are not sent yet.

They are kept until their turn has begun: a shell that is killed loses none, and the next one here takes
them over.
"""

import asyncio
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import is_ulid
from agent_relay.faces.render.output import render_moment
from agent_relay.system.clock import SystemClock, create_ulid
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.locks import take_lock

if TYPE_CHECKING:
    from agent_relay.faces.shell._agent_switch import PreferredReturn


_LIMIT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    """A typed message and its id, by which a daemon that is asked twice knows that it is the same."""

    id: str
    text: str


NO_MESSAGE = QueuedMessage("", "")


class MessageQueue:
    """Messages in order, the oldest first. `changed` is called after every change.

    They are stored in a file that only the user can read: a shell that is killed loses none of them.
    """

    def __init__(self, path: str, changed: Callable[[], None]) -> None:
        self._path = path
        self._changed = changed
        self._messages: list[QueuedMessage] = []
        self._lock = take_lock(f"{path}.lock")

    def __len__(self) -> int:
        """Return how many messages wait."""
        return len(self._messages)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the messages' texts, the oldest first."""
        return iter([message.text for message in self._messages])

    @property
    def first(self) -> QueuedMessage:
        """The message that is sent next; `NO_MESSAGE` for none."""
        return self._messages[0] if self._messages else NO_MESSAGE

    def add(self, text: str) -> None:
        """Append `text` as the last message."""
        self._messages.append(_name(text))
        self._keep()

    def put_first(self, text: str) -> None:
        """Insert `text` before all the others."""
        self._messages.insert(0, _name(text))
        self._keep()

    def drop(self, message_id: str) -> None:
        """Remove the message of that id, which an agent has now; harmless if none has it."""
        self._messages = [message for message in self._messages if message.id != message_id]
        self._keep()

    def take_last(self) -> str:
        """Remove the newest message and return its text; empty for none."""
        message = self._messages.pop() if self._messages else NO_MESSAGE
        self._keep()
        return message.text

    def take_over(self, folder: str) -> int:
        """Take over the messages that ended shells have left in `folder`; return how many."""
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
        """Release the queue; the next shell takes over what is left."""
        if not self._messages:
            _remove(self._path)
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _keep(self) -> bool:
        """Write what waits to the file; return whether that worked. What cannot be written is still sent."""
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


def _name(text: str) -> QueuedMessage:
    return QueuedMessage(create_ulid(SystemClock()), text)


def _read(path: str) -> Sequence[QueuedMessage] | None:
    """Return the messages of a file; `None` if they cannot be read now, and should stay."""
    try:
        found = json.loads(read_bounded(path, limit_bytes=_LIMIT_BYTES))
    except (FileNotFoundError, ValueError, RecursionError):
        return []
    except (OSError, RelayError):
        return None
    read = [_parse(entry) for entry in found] if isinstance(found, list) else []
    return [message for message in read if message is not None]


def _parse(entry: object) -> QueuedMessage | None:
    """Return a message as it is stored, or was before messages had ids; `None` for anything else."""
    match entry:
        case [str(message_id), str(text)] if is_ulid(message_id):
            return QueuedMessage(message_id, text)
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


_RESTING = "every agent rests"
_LOOK_S = 30.0


class QueueState:
    """Tells whether the messages of `queue` are held back; `why` is empty if they are not.

    `changed` is called after every change, `go_on` when they are to be sent, `say` with a line to show.
    """

    def __init__(
        self,
        queue: MessageQueue,
        preferred: "PreferredReturn",
        *,
        changed: Callable[[], None],
        go_on: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._queue = queue
        self._changed = changed
        self._go_on = go_on
        self._say = say
        self._reset: asyncio.TimerHandle | None = None
        self._preferred = preferred
        self.why = ""

    def hold(self, why: str) -> None:
        """Hold back what waits until the person sends it."""
        self._forget_reset()
        self.why = why if len(self._queue) else ""
        self._changed()

    def release(self) -> None:
        """Stop holding back what waits."""
        self._forget_reset()
        self.why = ""
        self._changed()

    def settle(self, last: Mapping[str, object], message: str) -> None:
        """Decide after a turn's end what happens to what waits; `message` was the turn's own."""
        outcome = str(last.get("outcome"))
        if outcome == "resting":
            self.rest(message, str(last.get("resets_at", "")))
        elif outcome != "done":
            self.hold("the turn was stopped" if outcome == "stopped" else "the turn has failed")

    def rest(self, message: str, moment: str) -> None:
        """Put `message`, which no agent can take before `moment` (ISO 8601), first, and hold back all."""
        if message:
            self._queue.put_first(message)
        self.hold(_RESTING)
        moment = self._preferred.put_off(moment)
        wait_s = self._preferred.count_wait(moment)
        if wait_s is None or not self.why:
            return
        if self._preferred.goes_on:
            self.why = f"{_RESTING}, sent at {render_moment(moment)}"
            self._changed()
        self._await_reset(moment, wait_s)

    def _await_reset(self, moment: str, wait_s: float) -> None:
        """Set a timer, and read the clock now and then: a machine that sleeps stops timers, but no reset."""
        loop = asyncio.get_running_loop()
        if wait_s <= _LOOK_S:
            self._reset = loop.call_later(wait_s, self._end_rest)
            return
        self._reset = loop.call_later(_LOOK_S, self._look_at_clock, moment)

    def _look_at_clock(self, moment: str) -> None:
        wait_s = self._preferred.count_wait(moment)
        if wait_s is not None:
            self._await_reset(moment, wait_s)

    def _end_rest(self) -> None:
        """Send what waits, or tell the person, as the first reset has come and nothing else was done."""
        if self._preferred.goes_on:
            self._go_on()
            return
        self.hold("the first reset has passed")
        if self.why:
            self._say("→ The first reset has passed: Enter sends what waits.")

    def _forget_reset(self) -> None:
        if self._reset is not None:
            self._reset.cancel()
            self._reset = None
