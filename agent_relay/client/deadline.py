"""A limit for a whole request: who answers a byte at a time is hung up on, too."""

import socket
import threading
from types import TracebackType
from typing import Self


class Deadline:
    """While it is entered, connections it makes or is told of end at the latest `limit_s` seconds after that.

    A time limit of a socket is one for each of its calls, and starts anew with every byte.
    """

    def __init__(self, limit_s: float) -> None:
        self._turn = threading.Lock()
        self._held: list[socket.socket] = []
        self._timer = threading.Timer(limit_s, self._hang_up)
        self._timer.daemon = True
        self.is_over = False

    def __enter__(self) -> Self:
        """Time runs from now on."""
        self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing is hung up on any more."""
        self._timer.cancel()
        with self._turn:
            for one in self._held:
                one.close()
            self._held.clear()

    def connect(
        self, address: tuple[str, int], timeout: float | None, source: tuple[str, int] | None = None
    ) -> socket.socket:
        """A connection that ends with the deadline. Raises OSError."""
        return self.watch(socket.create_connection(address, timeout, source))

    def watch(self, made: socket.socket) -> socket.socket:
        """`made`, which ends with the deadline whatever is wrapped around it. Raises TimeoutError then."""
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
