"""One epoll loop with named timers: no threads, no asyncio, nothing to import."""

import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Note = Callable[[BaseException, str], None]

IN = select.EPOLLIN
OUT = select.EPOLLOUT
_NEVER = float("inf")
GONE = select.EPOLLHUP | select.EPOLLERR
# What cannot be dealt with now is looked at again after this, not at once and for ever.
REST_S = 0.1


class Loop:
    """Calls handlers with what is ready on their descriptors, and timers when due, until `stop`.

    What one of them raises is given to `note` and ends that event only.
    """

    __slots__ = (
        "_epoll",
        "_handlers",
        "_let_go",
        "_note",
        "_resting",
        "_running",
        "_soonest",
        "_timers",
        "_wanted",
    )

    def __init__(self, note: "Note") -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._let_go: dict[int, Callable[[], None]] = {}
        self._wanted: dict[int, int] = {}
        self._resting: set[int] = set()
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}
        self._note = note
        self._soonest = _NEVER
        self._running = True

    def watch(
        self,
        fd: int,
        events: int,
        handler: "Callable[[int], None]",
        let_go: "Callable[[], None] | None" = None,
    ) -> None:
        """From now on `handler(ready)` is called; hang-ups and errors always are reported.

        A handler that raises is followed by `let_go()`, which forgets the descriptor; without one it is
        watched on after a rest. Raises OSError where it cannot be watched; then it is not.
        """
        self._epoll.register(fd, events)
        self._handlers[fd] = handler
        self._wanted[fd] = events
        if let_go is not None:
            self._let_go[fd] = let_go

    def want(self, fd: int, events: int) -> None:
        """Change what is waited for on a watched descriptor."""
        if self._wanted.get(fd, events) != events:
            self._wanted[fd] = events
            if fd not in self._resting:
                self._epoll.modify(fd, events)

    def rest(self, fd: int) -> None:
        """A watched descriptor is left alone for a moment: what is ready there cannot be dealt with now."""
        if fd in self._handlers and fd not in self._resting:
            self._resting.add(fd)
            self._epoll.unregister(fd)
            self.after(("rest", fd), REST_S, lambda: self._rise(fd))

    def _rise(self, fd: int) -> None:
        self._resting.discard(fd)
        if fd in self._handlers:
            self._epoll.register(fd, self._wanted[fd])

    def forget(self, fd: int) -> None:
        """Stop watching; call before closing the descriptor. Harmless when it is not watched."""
        if self._handlers.pop(fd, None) is not None:
            del self._wanted[fd]
            self._let_go.pop(fd, None)
            if fd in self._resting:
                self._resting.discard(fd)
                self.cancel(("rest", fd))
            else:
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
                    try:
                        handler(ready)
                    except Exception as error:  # noqa: BLE001 - the root of one event: the others go on
                        self._survive(fd, error)
            if self._soonest <= monotonic():
                self._ring(monotonic())

    def _survive(self, fd: int, error: Exception) -> None:
        """What raised costs its descriptor; one that nobody may lose is watched on."""
        self._note(error, "an event")
        let_go = self._let_go.get(fd)
        if let_go is None:
            self.rest(fd)
            return
        try:
            let_go()
        except Exception as second:  # noqa: BLE001 - the same root: what is left of it must not come again
            self._note(second, "letting go")
            self.forget(fd)

    def _ring(self, now: float) -> None:
        for name, (due, call) in list(self._timers.items()):
            if due <= now and self._timers.get(name) == (due, call):
                del self._timers[name]
                try:
                    call()
                except Exception as error:  # noqa: BLE001 - the root of one timer: the others go on
                    self._note(error, "a timer")
        self._soonest = min((due for due, _ in self._timers.values()), default=_NEVER)
