"""A limit for a whole request: who answers a byte at a time is hung up on, too."""

import socket
import threading
import time
from types import TracebackType
from typing import Self

from agent_relay.system.resolving import Address, Resolver


class Deadline:
    """While it is entered, connections it makes or is told of end at the latest `limit_s` seconds after that.

    A time limit of a socket is one for each of its calls, and starts anew with every byte. Names are looked
    up by `resolver`, within the same limit.
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
        """Time runs from now on."""
        self._ends_at = time.monotonic() + self._limit_s
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
        """A connection that ends with the deadline, to the first place of the host that takes one.

        Raises OSError, and TimeoutError where no place does in time.
        """
        trouble = OSError(f"{address[0]} is nowhere")
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
        """How many seconds are left. Raises TimeoutError where none are."""
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

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
