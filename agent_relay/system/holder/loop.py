"""One epoll loop with named timers: no threads, no asyncio, nothing to import."""

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

IN = select.EPOLLIN
OUT = select.EPOLLOUT
GONE = select.EPOLLHUP | select.EPOLLERR


class Loop:
    """Calls handlers with what is ready on their descriptors, and timers when due, until `stop`."""

    __slots__ = ("_epoll", "_handlers", "_running", "_timers", "_wanted")

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._wanted: dict[int, int] = {}
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}
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
            self._timers[name] = (time.monotonic() + delay_s, call)

    def cancel(self, name: object) -> None:
        """The timer of that name does not ring."""
        self._timers.pop(name, None)

    def stop(self) -> None:
        """Leave `run` when the current events are dealt with."""
        self._running = False

    def run(self) -> None:
        """Serve until `stop`."""
        poll, handlers, timers = self._epoll.poll, self._handlers, self._timers
        while self._running:
            wait_s = -1.0
            if timers:
                wait_s = max(0.0, min(due for due, _ in timers.values()) - time.monotonic())
            for fd, ready in poll(wait_s):
                handler = handlers.get(fd)
                if handler is not None:
                    handler(ready)
            if timers:
                now = time.monotonic()
                for name, (due, call) in list(timers.items()):
                    if due <= now and timers.get(name) == (due, call):
                        del timers[name]
                        call()
