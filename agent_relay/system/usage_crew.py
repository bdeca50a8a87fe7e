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
_parts = msgspec.msgpack.Decoder(list[Part | None])


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
        self._parts: dict[str, Part] = {}
        self._running: dict[int, tuple[Sequence[Task], IO[bytes]]] = {}
        for share in shares:
            with contextlib.suppress(OSError):
                told = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it was read
                self._running[_fork_reader(share, told)] = share, told

    def take(self, path: str) -> Part | None:
        """What was read of `path`; `None` where nobody has."""
        self._gather()
        return self._parts.pop(path, None)

    def dismiss(self) -> None:
        """Nobody reads any more."""
        for child in self._running:
            os.kill(child, signal.SIGKILL)
        self._gather()

    def _gather(self) -> None:
        """Wait for everybody, and hear what they have read."""
        while self._running:
            # Out of the list first: a child that was waited for must never be killed by its number.
            child, (share, told) = self._running.popitem()
            _, status = os.waitpid(child, 0)
            with told:
                if status:
                    continue
                told.seek(0)
                parts = _parts.decode(told.read())
            self._parts |= {
                task.path: part for task, part in zip(share, parts, strict=True) if part is not None
            }


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
    """The tasks in shares of about one size."""
    shares: list[list[Task]] = [[] for _ in range(hands)]
    sizes = [0] * hands
    for task in sorted(tasks, key=lambda task: task.size, reverse=True):
        least = sizes.index(min(sizes))
        shares[least].append(task)
        sizes[least] += task.size
    return [share for share in shares if share]


def _fork_reader(tasks: Sequence[Task], told: IO[bytes]) -> int:
    """The process that reads `tasks` and writes their parts to `told`; 0 is its status where it could."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        gc.disable()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        told.write(msgspec.msgpack.encode([_read(task) for task in tasks]))
        told.flush()
        status = 0
    finally:
        # Whatever it was: its parent reads these files itself, and says what is wrong with them.
        os._exit(status)


def _read(task: Task) -> Part | None:
    try:
        return read_part(task.reader, task.path, 0, b"", task.memory)
    except RelayError:
        return None
