"""One epoll loop with named timers: no threads, no asyncio, nothing to import."""

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IN = select.EPOLLIN
OUT = select.EPOLLOUT
_NEVER = float("inf")
GONE = select.EPOLLHUP | select.EPOLLERR


class Loop:
    """Calls handlers with what is ready on their descriptors, and timers when due, until `stop`."""

    __slots__ = ("_epoll", "_handlers", "_running", "_soonest", "_timers", "_wanted")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._wanted: dict[int, int] = {}
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}
        self._soonest = _NEVER
        self._running = True

    def watch(self, fd: int, events: int, handler: "Callable[[int], None]") -> None:
        """From now on `handler(ready)` is called; hang-ups and errors always are reported."""
        self._handlers[fd] = handler
        self._wanted[fd] = events
        self._epoll.register(fd, events)

    def want(self, fd: int, events: int) -> None:
        """Change what is waited for on a watched descriptor."""
        if self._wanted.get(fd, events) != events:
            self._wanted[fd] = events
            self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Stop watching; call before closing the descriptor. Harmless when it is not watched."""
        if self._handlers.pop(fd, None) is not None:
            del self._wanted[fd]
            self._epoll.unregister(fd)

    def after(self, name: object, delay_s: float, call: "Callable[[], None]") -> None:
        """Call once after a delay, unless a timer of that name is already set."""
        if name not in self._timers:
            due = time.monotonic() + delay_s
            self._timers[name] = (due, call)
            self._soonest = min(self._soonest, due)

    def cancel(self, name: object) -> None:
        """The timer of that name does not ring."""
        self._timers.pop(name, None)

    def stop(self) -> None:
        """Leave `run` when the current events are dealt with."""
        self._running = False

    def run(self) -> None:
        """Serve until `stop`."""
        poll, handlers, monotonic = self._epoll.poll, self._handlers, time.monotonic
        while self._running:
            # A cancelled timer may wake the loop once for nothing; that is cheaper than looking for the next.
            wait_s = -1.0 if self._soonest == _NEVER else max(0.0, self._soonest - monotonic())
            for fd, ready in poll(wait_s):
                handler = handlers.get(fd)
                if handler is not None:
                    handler(ready)
            if self._soonest <= monotonic():
                self._ring(monotonic())

    def _ring(self, now: float) -> None:
        for name, (due, call) in list(self._timers.items()):
            if due <= now and self._timers.get(name) == (due, call):
                del self._timers[name]
                call()
        self._soonest = min((due for due, _ in self._timers.values()), default=_NEVER)
