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
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import Literal, ParamSpec, TypeVar, cast

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.system.failures import find_shortage_number
from agent_relay.system.spawn import give_streams, spawn_program
from agent_relay.system.work_server import BEGUN, LACKING, UNLOADED, serve_forked

_PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "work_server.py")
_PIECE = 1 << 16
_ERRORS = 2
_END_S = 10.0
"""Longest wait for the end of a killed process, in seconds; its memory may be on a slow disk."""
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


class WorkLimit(msgspec.Struct, frozen=True):
    """Limit of work: seconds of processor time, and seconds of waiting for disks and programs.

    The processor time is the limit that matters on a machine that is busy with something else.
    """

    processor_s: int
    wall_s: float


class TookTooLongError(RelayError):
    """The work was ended at its limit, and has had no effect but what it had written."""


class UnansweredError(TookTooLongError):
    """The server that starts processes did not answer, and was ended: nothing was done."""


class NotBegunError(RelayError):
    """No process could be started for the work: nothing was done."""


class _ServerGoneError(NotBegunError):
    """The server ended before it had started a process."""


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
        TookTooLongError at the limit, UnansweredError if it was not begun by half of it, NotBegunError if the
        process could not be started, KilledError if it was killed or lacked memory, and RelayError if `end`
        ended it.
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
            except (UnansweredError, _ServerGoneError):
                # One that was killed may not have ended to its last: the next work would still be sent to it.
                _SERVER.end()
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


class _ServerProcess:
    """A server that runs: its pid, the connection it is asked by, and the pipe at whose end it ends."""

    def __init__(self, start: Callable[[int, int], int]) -> None:
        """Start it by `start`, which gets the ends that become its input and output. Raise OSError."""
        self._is_reaped = False
        self.requests, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, contextlib.ExitStack() as undo:
            undo.callback(self.requests.close)
            lives, self._lives = os.pipe()
            undo.callback(os.close, self._lives)
            try:
                self._pid = start(lives, theirs.fileno())
            finally:
                os.close(lives)
            undo.pop_all()

    def has_ended(self) -> bool:
        if not self._is_reaped:
            self._is_reaped = os.waitpid(self._pid, os.WNOHANG)[0] != 0
        return self._is_reaped

    def end(self) -> None:
        """End it and all that was forked from it, and wait for that."""
        self.requests.close()
        if not self.has_ended():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGKILL)
            os.kill(self._pid, signal.SIGKILL)  # it may not lead its group yet
            os.waitpid(self._pid, 0)
            self._is_reaped = True
        os.close(self._lives)


class _Server:
    """The one server of this process, started when it is first needed, and again after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._modules: tuple[str, ...] = ()
        self._running: _ServerProcess | None = None
        self._is_told = False

    def fork(self) -> None:
        """Fork the server from this process, if that can be done."""
        with contextlib.suppress(OSError):
            self._running = _ServerProcess(_fork)

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
                if isinstance(error, ConnectionError):
                    self._end()
                raise NotBegunError(f"no process can be started: {error}") from error

    def end(self) -> None:
        """End the server and all that was forked from it, and wait for that; harmless if there is none."""
        with self._lock:
            self._end()

    def _find_or_start(self) -> socket.socket:
        if self._running is not None and self._running.has_ended():
            self._end()
        if self._running is None:
            self._running = _ServerProcess(_spawn)
        if not self._is_told:
            self._running.requests.sendall(json.dumps({"path": sys.path, "modules": self._modules}).encode())
            self._is_told = True
        return self._running.requests

    def _end(self) -> None:
        running, self._running, self._is_told = self._running, None, False
        if running is not None:
            running.end()


def _fork(lives: int, requests: int) -> int:
    pid = os.fork()
    if pid == 0:
        serve_forked(requests, lives)
    return pid


def _spawn(lives: int, requests: int) -> int:
    command = [sys.executable, "-I", _PROGRAM]
    return spawn_program(sys.executable, command, os.environ, actions=give_streams(lives, requests, _ERRORS))


_SERVER = _Server()


def fork_server() -> None:
    """Fork the server from this process, so that it need not load once more what is loaded here.

    Call it while there is one thread and no event loop; later it would copy half-done work.
    """
    _SERVER.fork()


def prepare(modules: Sequence[str]) -> None:
    """Have the server, started if none runs, import `modules`, so that no work waits. Raise OSError."""
    _SERVER.prepare(modules)


@atexit.register
def end_server() -> None:
    """End the server and what was forked from it; it is started again when it is needed."""
    _SERVER.end()


def _await_answer(connection: socket.socket, order: bytes, limit: WorkLimit) -> object:
    """Send the order and return what its work returned. Raise what the work raised."""
    began = time.monotonic()
    ends_at = began + limit.wall_s
    if not _has_word(connection, began + limit.wall_s / 2):
        raise UnansweredError(f"it was not begun within {limit.wall_s / 2:g} s")
    _check_begun(connection)
    try:
        connection.sendall(order)
        if not _has_word(connection, ends_at):
            raise TookTooLongError(f"it took more than {limit.wall_s:g} s")
        with connection.makefile("rb") as heard:
            answer: object = pickle.load(heard)  # noqa: S301 - our own process's
    except (EOFError, OSError, pickle.UnpicklingError) as error:
        raise KilledError("its process was ended") from error
    match answer:
        case (True, value):
            return value
        case (False, BaseException() as refused, int() as lacking):
            raise refused from (OSError(lacking, os.strerror(lacking)) if lacking else None)
        case int() if answer == UNLOADED:
            raise NotBegunError("a process was started but could not load its modules")
        case int() if answer == -signal.SIGXCPU:
            raise TookTooLongError(f"it took more than {limit.processor_s} s of processor time")
        case _:
            raise KilledError(f"its process was ended ({answer})")


def _check_begun(connection: socket.socket) -> None:
    """Raise NotBegunError, caused by what the machine lacks if that is why, unless the work was begun."""
    try:
        word = connection.recv(len(BEGUN))
        lacking = int(connection.recv(_PIECE) or b"0") if word == LACKING else 0
    except OSError:
        word, lacking = b"", 0
    if lacking:
        why = os.strerror(lacking)
        raise NotBegunError(f"no process can be started: {why}") from OSError(lacking, why)
    if word != BEGUN:
        raise _ServerGoneError("no process can be started: the server that starts it has ended")


def _has_word(connection: socket.socket, ends_at: float) -> bool:
    """Wait until there is something to read, and return whether there is."""
    said = select.poll()
    said.register(connection, select.POLLIN)
    return bool(said.poll(max(0.0, ends_at - time.monotonic()) * 1000))


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
) -> tuple[Literal[True], object] | tuple[bool, Exception, int]:
    """Do the work, inside the process; return true and its result, or false, its error and what it lacked."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 1))
    try:
        return _attempt(lambda: work(*args, **words))
    except MemoryError:
        return False, KilledError("its process ran out of memory"), 0


def run_here(work: Callable[[], _Found]) -> _Found:
    """Run `work` in this process, without a limit; errors are raised like those of `LimitedProcess.run`.

    A lack of memory is raised unchanged, since it is this process that lacks it.
    """
    match _attempt(work):
        case (True, found):
            return cast("_Found", found)
        case (_, error, _):
            raise error


def _attempt(work: Callable[[], object]) -> tuple[Literal[True], object] | tuple[bool, Exception, int]:
    """Return true and the result of `work`, or false, its error, and the errno of a lacking resource."""
    try:
        return True, work()
    except MemoryError:
        raise
    except RelayError as error:
        return False, error, find_shortage_number(error)
    except Exception as error:  # noqa: BLE001 - the root of the process; who asked hears of it
        # Only the location: an error's message may quote private text, and not all errors can be pickled.
        frame = traceback.extract_tb(error.__traceback__)[-1]
        told = RuntimeError(f"{type(error).__name__} at {frame.filename}:{frame.lineno}")
        told.__cause__ = error
        return False, told, find_shortage_number(error)
