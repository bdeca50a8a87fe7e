"""Run programs to their end, several at once, within limits of time and size; or hear how one starts."""

import contextlib
import os
import select
import selectors
import signal
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from enum import Enum, auto

import msgspec

from agent_relay.system.spawn import find_program, give_streams, keep_absolute, spawn_program

LIMIT_BYTES = 1 << 16
_CHUNK_BYTES = 1 << 16
_KILLED_LIMIT_S = 1.0
"""Longest wait for a killed program, in seconds: it may itself be waiting for a dead disk."""


class Ending(Enum):
    """End of a program's run."""

    ANSWERED = auto()
    """It ended by itself: with a status, or by a signal."""
    LATE = auto()
    """It was ended at the time limit."""
    LONG = auto()
    """It was ended at the size limit."""
    NOT_STARTED = auto()


class ProgramAnswer(msgspec.Struct, frozen=True):
    """The output of one program, and how it ended.

    `status` is its exit status if it is ANSWERED, -N if signal N ended it; else -1. `output` and `errors` are
    no longer than the size limit. `why` and `errno` are the system's reason if it is NOT_STARTED.
    """

    ending: Ending
    status: int = -1
    output: bytes = b""
    errors: bytes = b""
    why: str = ""
    errno: int = 0

    @property
    def ok(self) -> bool:
        """True if it ended by itself and reported success."""
        return self.status == 0

    @property
    def is_cut(self) -> bool:
        """True if it was ended at one of the limits."""
        return self.ending in {Ending.LATE, Ending.LONG}


class _Asked(msgspec.Struct):
    """A program that runs, and the descriptors of its output; `handle` becomes readable when it ends.

    `status` is `None` until it was reaped.
    """

    key: str
    pid: int
    handle: int
    said: tuple[int, int]
    status: int | None = None
    output: bytearray = msgspec.field(default_factory=bytearray)
    errors: bytearray = msgspec.field(default_factory=bytearray)


def run_program(
    command: Sequence[str],
    *,
    limit_s: float,
    limit_bytes: int = LIMIT_BYTES,
    environ: Mapping[str, str] | None = None,
) -> ProgramAnswer:
    """Run one program as `ask_programs` does; return its answer."""
    ((_, answer),) = ask_programs({"": command}, limit_s=limit_s, limit_bytes=limit_bytes, environ=environ)
    return answer


def ask_programs(
    commands: Mapping[str, Sequence[str]],
    *,
    limit_s: float,
    limit_bytes: int = LIMIT_BYTES,
    environ: Mapping[str, str] | None = None,
) -> Generator[tuple[str, ProgramAnswer]]:
    """Yield the key of each command with its answer, as they come; all come within `limit_s` seconds.

    The programs run in this process's folder with the variables `environ`, or else this process's own. They
    are looked for in the absolute folders of its PATH, have nothing to read, and have their own sessions, so
    that no terminal's signal reaches them. A program has answered when it ended, even if another process
    still has its output open. One that is late or writes more than `limit_bytes` is killed with its process
    group. Close the iterator (`contextlib.closing`) if it is not read to its end: what runs then is killed
    too.
    """
    deadline = time.monotonic() + limit_s
    running: dict[str, _Asked] = {}
    try:
        for key, command in commands.items():
            try:
                # One that ended us between a program's birth and our note of it would leave it running.
                with _signals_held():
                    running[key] = _start(key, command, os.environ if environ is None else environ)
            except (OSError, ValueError) as error:
                number = (error.errno or 0) if isinstance(error, OSError) else 0
                why = os.strerror(number) if number else str(error)
                yield key, ProgramAnswer(Ending.NOT_STARTED, why=why, errno=number)
        yield from _collect(running, deadline=deadline, limit_bytes=limit_bytes)
    finally:
        for asked in running.values():
            _end(asked)


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Block all signals to this process meanwhile."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(key: str, command: Sequence[str], environ: Mapping[str, str]) -> _Asked:
    """Start the program. Raise OSError or ValueError; nothing runs then."""
    program = find_program(command[0], keep_absolute(environ.get("PATH", os.defpath)))
    with contextlib.ExitStack() as opened:
        output, its_output = _open_pipe(opened)
        errors, its_errors = _open_pipe(opened)
        pid = spawn_program(program, command, environ, actions=give_streams(None, its_output, its_errors))
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


def start_and_hear(
    command: Sequence[str], *, stream: int, until: bytes, limit_bytes: int, limit_s: float
) -> tuple[int, bytes]:
    """Start a program that runs on; return its pid, and what it says on `stream` (1 or 2), `until` included.

    It may say less: it closed the stream, or a limit was reached. Raise OSError if it cannot be started.
    """
    heard, told = os.pipe()
    said, ends_at = b"", time.monotonic() + limit_s
    try:
        try:
            actions = give_streams(*(told if one == stream else None for one in range(3)))
            pid = spawn_program(command[0], command, os.environ, actions=actions)
        finally:
            os.close(told)
        while not said.endswith(until) and len(said) < limit_bytes:
            if not select.select([heard], [], [], max(0.0, ends_at - time.monotonic()))[0]:
                break
            part = os.read(heard, limit_bytes)
            if not part:
                break
            said += part
    finally:
        os.close(heard)
    return pid, said


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
    # Not epoll, which a process that can open nothing more could not have.
    with selectors.PollSelector() as selector:
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
                    yield chosen.data[0].key, _finish(running, chosen.data[0], ending, limit_bytes)
    for asked in list(running.values()):
        yield asked.key, _finish(running, asked, Ending.LATE, limit_bytes)


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


def _finish(running: dict[str, _Asked], asked: _Asked, ending: Ending, limit_bytes: int) -> ProgramAnswer:
    """Return the answer of a program and remove it from `running`."""
    if ending is Ending.ANSWERED:
        _reap(asked)
    status = -1 if asked.status is None else asked.status
    _end(asked)
    del running[asked.key]
    return ProgramAnswer(ending, status, bytes(asked.output[:limit_bytes]), bytes(asked.errors[:limit_bytes]))


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
