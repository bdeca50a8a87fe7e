"""Run other programs: where they are looked for, and several at once within limits of time and size.

They are never looked for in the current folder, which may be somebody else's; none is left running.
"""

import contextlib
import os
import select
import selectors
import signal
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto


def keep_absolute(path: str) -> str:
    """Return a `PATH` without its empty and relative folders.

    Those mean the folder a program is started in, here mostly a repository: what it calls `git` is not what
    the user means, and relay runs git before anybody has looked at the repository.
    """
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


LIMIT_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_KILLED_LIMIT_S = 1.0
"""A killed program may wait for a dead disk: it is not waited for longer than this."""


class Ending(Enum):
    """How the run of a program ended."""

    ANSWERED = auto()
    """It ended by itself: with a status, or by a signal."""
    LATE = auto()
    """It was ended at the time limit."""
    LONG = auto()
    """It was ended at the size limit."""
    NOT_STARTED = auto()


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """The output of one program, and how it ended.

    `status` is its exit status if it is ANSWERED, -N if signal N ended it; else -1. `why` is the system's
    reason if it is NOT_STARTED.
    """

    ending: Ending
    status: int = -1
    output: bytes = b""
    errors: bytes = b""
    why: str = ""


@dataclass(slots=True)
class _Asked:
    """A program that runs, and the descriptors of its output; `handle` becomes readable when it ends.

    `status` is `None` until it was reaped.
    """

    key: str
    pid: int
    handle: int
    said: tuple[int, int]
    status: int | None = None
    output: bytearray = field(default_factory=bytearray)
    errors: bytearray = field(default_factory=bytearray)


def ask_programs(
    commands: Mapping[str, Sequence[str]], *, limit_s: float, limit_bytes: int = LIMIT_BYTES
) -> Generator[tuple[str, ProgramAnswer]]:
    """Yield the key of each command with its answer, as they come; all come within `limit_s` seconds.

    The programs run with this process's environment in its folder, have nothing to read, and have their own
    sessions, so that no terminal's signal reaches them. A program has answered when it ended, even if another
    process still has its output open. One that is late or writes more than `limit_bytes` is killed with its
    process group. Close the iterator (`contextlib.closing`) if it is not read to its end: what runs then is
    killed too.
    """
    deadline = time.monotonic() + limit_s
    running: dict[str, _Asked] = {}
    try:
        for key, command in commands.items():
            try:
                # One that ended us between a program's birth and our note of it would leave it running.
                with _signals_held() as mask:
                    running[key] = _start(key, command, mask)
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or str(error)
                yield key, ProgramAnswer(Ending.NOT_STARTED, why=why)
        yield from _collect(running, deadline=deadline, limit_bytes=limit_bytes)
    finally:
        for asked in running.values():
            _end(asked)


@contextlib.contextmanager
def _signals_held() -> Iterator[set[int]]:
    """Block all signals to this process meanwhile; yield the mask it had."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield {int(number) for number in before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(key: str, command: Sequence[str], mask: set[int]) -> _Asked:
    """Start the program with that mask of signals. Raise OSError or ValueError; nothing runs then."""
    with contextlib.ExitStack() as opened:
        output, its_output = _open_pipe(opened)
        errors, its_errors = _open_pipe(opened)
        pid = os.posix_spawnp(
            command[0],
            list(command),
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, its_output, 1),
                (os.POSIX_SPAWN_DUP2, its_errors, 2),
            ],
            setsid=True,
            setsigmask=mask,
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
        try:
            handle = os.pidfd_open(pid)
        except OSError:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        opened.pop_all()
        os.close(its_output)
        os.close(its_errors)
        return _Asked(key, pid, handle, (output, errors))


def _open_pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    """Open a pipe, its reading end first; both ends are closed with `opened`."""
    ends = os.pipe()
    for end in ends:
        opened.callback(os.close, end)
    return ends


def _collect(
    running: dict[str, _Asked], *, deadline: float, limit_bytes: int
) -> Generator[tuple[str, ProgramAnswer]]:
    """Yield the answers of the programs in `running`, removing each from it."""
    with selectors.DefaultSelector() as selector:
        for asked in running.values():
            selector.register(asked.handle, selectors.EVENT_READ, (asked, None))
            for stream, into in _get_streams(asked):
                os.set_blocking(stream, False)
                selector.register(stream, selectors.EVENT_READ, (asked, into))
        while running:
            left_s = deadline - time.monotonic()
            ready = selector.select(max(left_s, 0.0))
            if not ready and left_s <= 0:
                break
            for chosen, _ in ready:
                ending = _look(selector, chosen, running, limit_bytes=limit_bytes)
                if ending is not None:
                    yield chosen.data[0].key, _finish(running, chosen.data[0], ending)
    for asked in list(running.values()):
        yield asked.key, _finish(running, asked, Ending.LATE)


def _look(
    selector: selectors.BaseSelector,
    chosen: selectors.SelectorKey,
    running: Mapping[str, _Asked],
    *,
    limit_bytes: int,
) -> Ending | None:
    """Read what is available; return how the program ended, `None` if it has not."""
    asked, into = chosen.data
    if asked.key not in running:
        return None  # it came to its end with the one before
    if into is not None and not _read(chosen.fd, into):
        selector.unregister(chosen.fd)
    ending = _find_ending(asked, has_ended=into is None, limit_bytes=limit_bytes)
    if ending is not None:
        for one in (asked.handle, *(stream for stream, _ in _get_streams(asked))):
            with contextlib.suppress(KeyError):
                selector.unregister(one)
    return ending


def _get_streams(asked: _Asked) -> list[tuple[int, bytearray]]:
    return list(zip(asked.said, (asked.output, asked.errors), strict=True))


def _read(stream: int, into: bytearray) -> bool:
    """Append to `into` what can be read without waiting; return whether more may come."""
    try:
        chunk = os.read(stream, _CHUNK_BYTES)
    except BlockingIOError:
        return True
    into += chunk
    return bool(chunk)


def _find_ending(asked: _Asked, *, has_ended: bool, limit_bytes: int) -> Ending | None:
    """Return how the program ended, its remaining output read; `None` if it has not ended."""
    if has_ended:
        for stream, into in _get_streams(asked):
            while len(into) <= limit_bytes:
                before = len(into)
                _read(stream, into)
                if len(into) == before:
                    break
    if max(len(asked.output), len(asked.errors)) > limit_bytes:
        return Ending.LONG
    return Ending.ANSWERED if has_ended else None


def _finish(running: dict[str, _Asked], asked: _Asked, ending: Ending) -> ProgramAnswer:
    """Return the answer of a program and remove it from `running`."""
    if ending is Ending.ANSWERED:
        _reap(asked)
    status = -1 if asked.status is None else asked.status
    _end(asked)
    del running[asked.key]
    return ProgramAnswer(ending, status, bytes(asked.output), bytes(asked.errors))


def _end(asked: _Asked) -> None:
    """Kill the program if it still runs, and close its descriptors; what an ended one left running stays."""
    if asked.status is None:
        _kill(asked)
    for one in (*asked.said, asked.handle):
        os.close(one)


def _kill(asked: _Asked) -> None:
    # The group: many a program is a script that started the real one. It is not reaped, so the id is its own.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(asked.pid, signal.SIGKILL)
    ended = select.poll()
    ended.register(asked.handle, select.POLLIN)
    if ended.poll(_KILLED_LIMIT_S * 1000):
        _reap(asked)


def _reap(asked: _Asked) -> None:
    _, status = os.waitpid(asked.pid, 0)
    asked.status = os.waitstatus_to_exitcode(status)
