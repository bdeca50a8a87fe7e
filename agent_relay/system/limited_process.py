"""Run work on texts of others in a process of its own, which can be killed at its limit; a thread cannot.

An expression that runs for ever blocks every thread of its process. The work is forked from a server that has
imported what it needs and runs nothing else (`work_server`), so that it begins within milliseconds. Both end
with the process that started them, however that ends: `multiprocessing`'s server would first finish its
imports, and live as long as its children.
"""

import atexit
import contextlib
import json
import os
import pickle
import resource
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ParamSpec, TypeVar, cast

from agent_relay.domain.errors import RelayError
from agent_relay.system.work_server import BEGUN, UNLOADED

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work_server.py")
_PIECE = 1 << 16
_END_S = 10.0
"""How long the end of a killed process may take; its memory may be on a slow disk."""
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class WorkLimit:
    """How long work may take: seconds of processor time, and seconds of waiting for disks and programs.

    The processor time is the limit that matters on a machine that is busy with something else.
    """

    processor_s: int
    wall_s: float


class TookTooLongError(RelayError):
    """The work was ended at its limit, and has had no effect but what it had written."""


class NotBegunError(RelayError):
    """No process could be started for the work: nothing was done."""


class KilledError(RelayError):
    """The work's process was killed by somebody else, or lacked memory: there is no result."""


class LimitedProcess:
    """Runs one piece of work at a time, each in its own process. Call `run` in a thread, `end` from any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._is_ended = False

    def run(
        self, limit: WorkLimit, work: Callable[_Given, _Found], /, *args: _Given.args, **words: _Given.kwargs
    ) -> _Found:
        """Run `work`, a function of a module, and return its result; arguments and result are pickled.

        Raise a RelayError of `work` as it is and its other errors as RuntimeError naming type and line,
        TookTooLongError at the limit, NotBegunError if the process could not be started, KilledError if it
        was killed or lacked memory, and RelayError if `end` ended it.
        """
        order = pickle.dumps((_perform, (limit.processor_s, work, args, words)))
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise NotBegunError(f"no process can be started: {error}") from error
        with ours:
            with theirs:
                _SERVER.request(theirs)
            with self._lock:
                self._connection, self._is_ended = ours, False
            try:
                return cast("_Found", _await_answer(ours, order, limit))
            except KilledError as error:
                if self._is_ended:
                    raise RelayError(error.sentence) from error
                raise
            finally:
                with self._lock:
                    self._connection = None
                if not _has_ended(ours):
                    # Who should end it is stopped, or waits for a disk itself: the next work needs another.
                    _SERVER.end()

    def end(self) -> None:
        """End the work under way at once; harmless if there is none."""
        with self._lock:
            if self._connection is not None:
                self._is_ended = True
                _ask_for_end(self._connection)


class _Server:
    """The one server of this process, started when it is first needed, and again after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modules: tuple[str, ...] = ()
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def prepare(self, modules: Sequence[str]) -> None:
        """Start the server if it is not running, and have it import `modules`. Raise OSError."""
        with self._lock:
            self._modules = tuple(modules)
            self._find_or_start()

    def request(self, connection: socket.socket) -> None:
        """Have a process started for the work sent on the connection. Raise NotBegunError."""
        with self._lock:
            try:
                socket.send_fds(self._find_or_start(), [b"w"], [connection.fileno()])
            except OSError as error:
                raise NotBegunError(f"no process can be started: {error}") from error

    def end(self) -> None:
        """End the server and all that was forked from it, and wait for that; harmless if there is none."""
        with self._lock:
            self._end()

    def _find_or_start(self) -> socket.socket:
        if self._running is not None and self._running[0].poll() is None:
            return self._running[1]
        self._end()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                ours.sendall(json.dumps({"path": sys.path, "modules": self._modules}).encode())
                process = subprocess.Popen(
                    [sys.executable, "-I", _PROGRAM, str(theirs.fileno())],
                    stdin=subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    process_group=0,
                )
            except OSError:
                ours.close()
                raise
        self._running = process, ours
        return ours

    def _end(self) -> None:
        if self._running is None:
            return
        (process, requests), self._running = self._running, None
        requests.close()
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
        if process.stdin is not None:
            process.stdin.close()
        process.wait()


_SERVER = _Server()


def prepare(modules: Sequence[str]) -> None:
    """Start the server that imports `modules`, so that no work waits for them. Raise OSError."""
    _SERVER.prepare(modules)


@atexit.register
def end_server() -> None:
    """End the server and what was forked from it; it is started again when it is needed."""
    _SERVER.end()


def _await_answer(connection: socket.socket, order: bytes, limit: WorkLimit) -> object:
    """Send the order and return what its work returned. Raise what the work raised."""
    ends_at = time.monotonic() + limit.wall_s
    _await_word(connection, ends_at, limit)
    try:
        is_begun = connection.recv(len(BEGUN)) == BEGUN
    except OSError:
        is_begun = False
    if not is_begun:
        raise NotBegunError("no process can be started: the server that starts it has ended")
    try:
        connection.sendall(order)
        _await_word(connection, ends_at, limit)
        with connection.makefile("rb") as heard:
            answer: object = pickle.load(heard)  # noqa: S301 - our own process's
    except (EOFError, OSError, pickle.UnpicklingError) as error:
        raise KilledError("its process was ended") from error
    match answer:
        case (True, value):
            return value
        case (False, BaseException() as refused):
            raise refused
        case int() if answer == UNLOADED:
            raise NotBegunError("a process was started but could not load its modules")
        case int() if answer == -signal.SIGXCPU:
            raise TookTooLongError(f"it took more than {limit.processor_s} s of processor time")
        case _:
            raise KilledError(f"its process was ended ({answer})")


def _await_word(connection: socket.socket, ends_at: float, limit: WorkLimit) -> None:
    said = select.poll()
    said.register(connection, select.POLLIN)
    if not said.poll(max(0.0, ends_at - time.monotonic()) * 1000):
        raise TookTooLongError(f"it took more than {limit.wall_s:g} s")


def _ask_for_end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):  # it ended already
        connection.shutdown(socket.SHUT_WR)


def _has_ended(connection: socket.socket) -> bool:
    """Ask the process to end, and return whether it does within some seconds."""
    _ask_for_end(connection)
    ends_at = time.monotonic() + _END_S
    said = select.poll()
    said.register(connection, select.POLLIN)
    with contextlib.suppress(OSError):
        while said.poll(max(0.0, ends_at - time.monotonic()) * 1000):
            if not connection.recv(_PIECE):
                return True
        return False
    return True


def _perform(
    processor_s: int, work: Callable[..., object], args: tuple[object, ...], words: dict[str, object]
) -> tuple[bool, object]:
    """Do the work, inside the process; return true and its result, or false and its error."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 1))
    try:
        return True, work(*args, **words)
    except RelayError as error:
        return False, error
    except MemoryError:
        return False, KilledError("its process ran out of memory")
    except Exception as error:  # noqa: BLE001 - the root of the process; who asked hears of it
        # Where, not what: the words of an error may be those of a text, and not all errors can be pickled.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return False, RuntimeError(f"{type(error).__name__} at {frame.filename}:{frame.lineno}")
