"""Looks names up within a limit: the system's own way knows none, and waits for a name server for minutes."""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait

Address = tuple[int, int, int, str, tuple[str | int, ...] | tuple[int, bytes]]
"""Family, type and protocol of a socket, a name nobody uses, where it connects to: as `getaddrinfo` says."""
LookUp = Callable[[str, int], Sequence[Address]]


def ask_system(host: str, port: int) -> Sequence[Address]:
    """Where the system says the host is, for a connection of bytes. Raises OSError, UnicodeError."""
    return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)


class Resolver:
    """Asks `look_up` in a thread that keeps no process waiting, and never twice at once.

    Who asks while one question hangs waits for its answer: a name server that is gone costs one thread.
    """

    def __init__(self, look_up: LookUp = ask_system) -> None:
        self._look_up = look_up
        self._turn = threading.Lock()
        self._asked: tuple[str, int] | None = None
        self._answer: Future[Sequence[Address]] = Future()

    def find(self, host: str, port: int, limit_s: float) -> Sequence[Address]:
        """Where the host is. Raises OSError, UnicodeError for no host, TimeoutError after `limit_s`."""
        ends_at = time.monotonic() + limit_s
        while True:
            asked, answer = self._ask((host, port))
            wait([answer], max(0.0, ends_at - time.monotonic()))
            if not answer.done():
                raise TimeoutError
            if asked == (host, port):
                return answer.result()

    def _ask(self, name: tuple[str, int]) -> tuple[tuple[str, int], Future[Sequence[Address]]]:
        """The question under way, this one if there was none, and its answer."""
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
        except BaseException as error:  # noqa: BLE001 - the thread's root: whoever waits must hear of it
            answer.set_exception(error)
        else:
            answer.set_result(found)
