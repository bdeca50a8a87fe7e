"""A time limit for a whole request, name resolution included: a server that sends byte by byte is cut off.

A socket's own limit starts anew with every byte, and the system's name resolution has none: it waits for a
name server for minutes.
"""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from types import TracebackType
from typing import Self

Address = tuple[int, int, int, str, tuple[str | int, ...] | tuple[int, bytes]]
"""Family, type, protocol, canonical name (not used) and address, as `getaddrinfo` returns them."""
LookUp = Callable[[str, int], Sequence[Address]]


def ask_system(host: str, port: int) -> Sequence[Address]:
    """Resolve the host by the system, for a stream connection. Raise OSError, UnicodeError."""
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


class Resolver:
    """Calls `look_up` in a thread that does not keep the process alive, and never twice at once.

    A caller that asks while one question hangs waits for its answer: a name server that is gone costs one
    thread.
    """

    def __init__(self, look_up: LookUp = ask_system) -> None:
        self._look_up = look_up
        self._turn = threading.Lock()
        self._asked: tuple[str, int] | None = None
        self._answer: Future[Sequence[Address]] = Future()

    def find(self, host: str, port: int, limit_s: float) -> Sequence[Address]:
        """Resolve the host. Raise OSError, UnicodeError for no host, TimeoutError after `limit_s`."""
        ends_at = time.monotonic() + limit_s
        while True:
            asked, answer = self._ask((host, port))
            wait([answer], max(0.0, ends_at - time.monotonic()))
            if not answer.done():
                raise TimeoutError
            if asked == (host, port):
                return answer.result()

    def _ask(self, name: tuple[str, int]) -> tuple[tuple[str, int], Future[Sequence[Address]]]:
        """Return the question under way, this one if there was none, and its answer."""
        with self._turn:
            if self._asked is None or self._answer.done():
                self._asked, self._answer = name, Future()
                threading.Thread(
                    target=self._run, args=(name, self._answer), name="resolve", daemon=True
                ).start()
            return self._asked, self._answer

    def _run(self, name: tuple[str, int], answer: Future[Sequence[Address]]) -> None:
        try:
            found = self._look_up(*name)
        except (OSError, ValueError, OverflowError) as error:
            answer.set_exception(error)
        else:
            answer.set_result(found)


class Deadline:
    """Ends the connections it makes or watches at the latest `limit_s` seconds after it is entered.

    A socket's time limit is one for each of its calls, and starts anew with every byte. Names are looked up
    by `resolver`, within the same limit.
    """

    def __init__(self, limit_s: float, resolver: Resolver) -> None:
        self._limit_s = limit_s
        self._ends_at = 0.0
        self._resolver = resolver
        self._turn = threading.Lock()
        self._held: list[socket.socket] = []
        self._timer = threading.Timer(limit_s, self._hang_up)
        self._timer.daemon = True
        self.is_over = False

    def __enter__(self) -> Self:
        """Start the time limit."""
        self._ends_at = time.monotonic() + self._limit_s
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop watching the connections."""
        self._timer.cancel()
        with self._turn:
            for one in self._held:
                one.close()
            self._held.clear()

    def connect(
        self, address: tuple[str, int], timeout: float | None, source: tuple[str, int] | None = None
    ) -> socket.socket:
        """Return a connection that ends with the deadline, to the first address of the host that accepts one.

        Raise OSError, and TimeoutError if no address does in time.
        """
        trouble = OSError(f"no address is known for {address[0]}")
        for found in self._resolver.find(*address, self._find_left()):
            try:
                made = self._reach(found, source)
            except OSError as error:
                trouble = error
                continue
            made.settimeout(timeout)
            return self.watch(made)
        raise trouble

    def _reach(self, found: Address, source: tuple[str, int] | None) -> socket.socket:
        family, kind, protocol, _, place = found
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(self._find_left())
            if source is not None:
                made.bind(source)
            made.connect(place)
        except OSError:
            made.close()
            raise
        return made

    def _find_left(self) -> float:
        """Return how many seconds are left. Raise TimeoutError if none are."""
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def watch(self, made: socket.socket) -> socket.socket:
        """Return `made`, which ends with the deadline whatever wraps it. Raise TimeoutError if it is over."""
        with self._turn:
            if self.is_over:
                made.close()
                raise TimeoutError
            self._held.append(made.dup())
        return made

    def _hang_up(self) -> None:
        with self._turn:
            self.is_over = True
            for one in self._held:
                try:
                    one.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue  # they hung up before
