"""Read many new files in several forked processes, while the command that started them gets ready.

The children come from a plain fork: they begin within a millisecond with everything loaded, send bytes back,
and end by themselves if their parent is killed. What a failed child was to read, its parent reads.
"""

import contextlib
import gc
import os
import signal
import struct
from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.transcripts.usage.readers import UsageReader
from agent_relay.transcripts.usage.records import ReaderState
from agent_relay.usage.scan.growing_file import Part, ReadBuffer, decode_part, make_read_buffer, read_part

LEAST_BYTES = 32 << 20
"""Less than this is read sooner by one process than by several."""
_MOST_HANDS = 8
_NUMBER_BYTES = 8
_TOLD = struct.Struct("=QQQ")
"""Which reader has read which task, and how many bytes its answer has."""
_LARGE = 64
"""A task is large if it is more than this fraction (1/64) of all bytes."""


class Task(msgspec.Struct, frozen=True):
    """A file to be read from its beginning; `size` in bytes."""

    reader: UsageReader
    path: str
    size: int
    memory: ReaderState


def count_readers() -> int:
    """Return how many processes can read at once on this machine."""
    return min(len(os.sched_getaffinity(0)), _MOST_HANDS)


class ReaderPool:
    """The reading processes; none if there is little to read."""

    def __init__(self) -> None:
        self._paths = list[str]()
        self._left = set[str]()
        self._parts = dict[str, Part | None]()
        self._readers = list[_Reader]()
        self._closing = contextlib.ExitStack()

    def hire(self, tasks: Sequence[Task], hands: int) -> None:
        """Start `hands` readers; each takes the next of `tasks` whenever it has read one. Raise OSError."""
        with contextlib.ExitStack() as stack:
            self._heard, said = os.pipe()
            stack.callback(os.close, self._heard)
            # Held by readers alone: the end of the last of them is the end of what there is to hear.
            with open(said, "wb") as pipe, open(os.memfd_create("tasks"), "w+b") as waiting:
                waiting.write(b"".join(number.to_bytes(_NUMBER_BYTES) for number in _order(tasks)))
                waiting.seek(0)
                for number in range(hands):
                    with contextlib.suppress(OSError):
                        self._readers.append(_Reader(number, tasks, waiting.fileno(), pipe.fileno()))
            self._paths = [task.path for task in tasks]
            self._left = set(self._paths)
            self._closing = stack.pop_all()

    def take(self, path: str) -> Part | None:
        """Wait for what was read of `path` and return it; `None` if no reader could read it."""
        while path in self._left and path not in self._parts:
            told = os.read(self._heard, _TOLD.size)
            if not told:
                self._left.clear()
                break
            reader, number, size = _TOLD.unpack(told)
            self._parts[self._paths[number]] = self._readers[reader].recall(size)
        self._left.discard(path)
        return self._parts.pop(path, None)

    def dismiss(self) -> None:
        """Stop all readers and release what they used."""
        with self._closing:
            while self._readers:
                self._readers.pop().end()


class _Reader:
    """A process that reads tasks from the shared queue, and how far its answers were received."""

    def __init__(self, number: int, tasks: Sequence[Task], waiting: int, said: int) -> None:
        """Fork the process; raise OSError if that fails."""
        self._place = 0
        with contextlib.ExitStack() as stack:
            self._told = stack.enter_context(open(os.memfd_create("told"), "w+b"))
            self._child = _fork_reader(number, tasks, waiting, self._told, said)
            self._closing = stack.pop_all()

    def recall(self, size: int) -> Part | None:
        """Return its next part, which has `size` bytes; `None` for a file it could not read."""
        data = os.pread(self._told.fileno(), size, self._place)
        self._place += size
        return decode_part(data)

    def end(self) -> None:
        """Kill it and release what it used."""
        with self._closing:
            os.kill(self._child, signal.SIGKILL)
            os.waitpid(self._child, 0)


@contextlib.contextmanager
def start_reader_pool(tasks: Sequence[Task], hands: int) -> Iterator[ReaderPool]:
    """Yield a pool of `hands` processes that read `tasks`, until the end of the block at most.

    It has no process if there is little to read or they cannot be started.
    """
    is_much = hands > 1 and sum(task.size for task in tasks) >= LEAST_BYTES
    crew = ReaderPool()
    try:
        if is_much:
            # Without room for what they tell everything is read by the command itself.
            with contextlib.suppress(OSError):
                crew.hire(tasks, hands)
        yield crew
    finally:
        crew.dismiss()


def _order(tasks: Sequence[Task]) -> list[int]:
    """Return the indexes of the tasks, large ones first, so that none is begun when the others have ended."""
    large = sum(task.size for task in tasks) // _LARGE
    return sorted(range(len(tasks)), key=lambda place: tasks[place].size < large)


def _fork_reader(number: int, tasks: Sequence[Task], waiting: int, told: IO[bytes], said: int) -> int:
    """Fork a process that reads the tasks whose indexes come next in `waiting`; return its id.

    All readers share `waiting`. A reader writes what it has read to `told`, and a message about it to
    `said`.
    """
    child = os.fork()
    if child:
        return child
    try:
        gc.disable()
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_DFL)
        room = make_read_buffer()
        while place := os.read(waiting, _NUMBER_BYTES):
            task = int.from_bytes(place)
            size = told.write(msgspec.msgpack.encode(_read(tasks[task], room)))
            told.flush()
            os.write(said, _TOLD.pack(number, task, size))
    finally:
        # Whatever it was: the others read on, and its parent what nobody has told.
        os._exit(0)


def _read(task: Task, room: ReadBuffer) -> Part | None:
    try:
        return read_part(task.reader, task.path, 0, b"", task.memory, room=room)
    except RelayError:
        return None
