"""Reads many new files by several processes at once, while the command that wants them gets ready.

Children of a plain fork: they begin in a millisecond with all that is loaded, hand back bytes, and end by
themselves where their parent was killed. Whatever becomes of one, its parent reads what it was to read.
"""

import contextlib
import gc
import os
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.logic.transcripts.usage.marks import Memory
from agent_relay.logic.transcripts.usage.registry import UsageReader
from agent_relay.system.usage_part import Part, read_part

LEAST_BYTES = 32 << 20
"""Less than this is read sooner than others are asked."""
_MOST_HANDS = 8
_SIZE_BYTES = 8
_parts = msgspec.msgpack.Decoder(Part | None)


@dataclass(frozen=True, slots=True)
class Task:
    """A file to be read from its beginning on; `size` in bytes."""

    reader: UsageReader
    path: str
    size: int
    memory: Memory


def count_hands() -> int:
    """How many processes can read at once here."""
    return min(len(os.sched_getaffinity(0)), _MOST_HANDS)


class Crew:
    """Those who read; nobody where there is little to read."""

    def __init__(self, shares: Sequence[Sequence[Task]]) -> None:
        self._readers = list[_Reader]()
        self._asked = dict[str, _Reader]()
        for share in shares:
            with contextlib.suppress(OSError):
                reader = _Reader(share)
                self._readers.append(reader)
                self._asked |= dict.fromkeys((task.path for task in share), reader)

    def take(self, path: str) -> Part | None:
        """What was read of `path`, as soon as it is; `None` where nobody reads it."""
        reader = self._asked.pop(path, None)
        return None if reader is None else reader.take(path)

    def dismiss(self) -> None:
        """Nobody reads any more."""
        while self._readers:
            self._readers.pop().end()


class _Reader:
    """A process that reads `tasks` in their order, and what it has told so far."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        """Raises OSError where there can be none."""
        self._paths = iter([task.path for task in tasks])
        self._parts = dict[str, Part | None]()
        self._place = 0
        with contextlib.ExitStack() as stack:
            self._told = stack.enter_context(tempfile.TemporaryFile())
            heard, said = os.pipe()
            stack.callback(os.close, heard)
            try:
                self._child = _fork_reader(tasks, self._told, said)
            finally:
                # Held by the child alone: its end is the end of what there is to hear.
                os.close(said)
            self._heard, self._closing = heard, stack.pop_all()

    def take(self, path: str) -> Part | None:
        """What it has read of `path`; `None` where it could not."""
        while path not in self._parts:
            size = int.from_bytes(os.read(self._heard, _SIZE_BYTES))
            if not size:
                return None
            self._parts[next(self._paths)] = _parts.decode(os.pread(self._told.fileno(), size, self._place))
            self._place += size
        return self._parts.pop(path)

    def end(self) -> None:
        """It is gone, and nothing of it is left."""
        with self._closing:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)


@contextlib.contextmanager
def start_crew(tasks: Sequence[Task], hands: int) -> Iterator[Crew]:
    """`hands` processes that read `tasks`, until the end of the block at most."""
    is_much = hands > 1 and sum(task.size for task in tasks) >= LEAST_BYTES
    crew = Crew(_share(tasks, hands) if is_much else ())
    try:
        yield crew
    finally:
        crew.dismiss()


def _share(tasks: Sequence[Task], hands: int) -> list[list[Task]]:
    """The tasks in shares of about one size, each in the order they were given in."""
    shares: list[list[int]] = [[] for _ in range(hands)]
    sizes = [0] * hands
    for place in sorted(range(len(tasks)), key=lambda place: tasks[place].size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(place)
        sizes[least] += tasks[place].size
    return [[tasks[place] for place in sorted(share)] for share in shares if share]


def _fork_reader(tasks: Sequence[Task], told: IO[bytes], said: int) -> int:
    """The process that reads `tasks`, writes what it reads to `told`, and the size of each part to `said`."""
    child = os.fork()
    if child:
        return child
    try:
        gc.disable()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        for task in tasks:
            size = told.write(msgspec.msgpack.encode(_read(task)))
            told.flush()
            os.write(said, size.to_bytes(_SIZE_BYTES))
    finally:
        # Whatever it was: its parent reads the other files itself, and says what is wrong with them.
        os._exit(0)


def _read(task: Task) -> Part | None:
    try:
        return read_part(task.reader, task.path, 0, b"", task.memory)
    except RelayError:
        return None
