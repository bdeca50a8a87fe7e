"""One epoll loop with named timers, and the notes of our own errors, which it survives.

No threads, no asyncio, no heavy imports. A note says where an error happened, without any of the contents
being worked on; the error ends the event it happened in, and nothing else.
"""

import os
import select
import time

from agent_relay.system.failures import render_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Self


NOTES_FILE = "holder-crash.txt"
# A mistake that is made with every key or read must not fill the runtime folder, which lies in memory.
_MOST_NOTES = 50


class Faults:
    """The notes in a leg's folder. `told(doing)` is called for each error; `count` is their number."""

    __slots__ = ("_folder", "_told", "count")

    def __init__(self, folder: str, told: "Callable[[str], None] | None" = None) -> None:
        self._folder = folder
        self._told = told
        self.count = 0

    def note(self, error: BaseException, doing: str) -> None:
        """Note where the error happened; `doing` is a constant or an operation's name. Raise nothing."""
        self.count += 1
        if self.count <= _MOST_NOTES:
            append_note(self._folder, error, doing)
        if self._told is not None:
            self._told(doing)

    def guard(self, doing: str) -> "Guard":
        """Return a guard: an error within it is noted and ends what is done within it, and nothing else."""
        return Guard(self, doing)


class Guard:
    """Guards one step of several, so that an error in it does not keep the others from being done.

    `failed` is whether what was guarded last ended with an error. It may be used again and again.
    """

    __slots__ = ("_doing", "_faults", "failed")

    def __init__(self, faults: Faults, doing: str) -> None:
        self._faults = faults
        self._doing = doing
        self.failed = False

    def __enter__(self) -> "Self":
        return self

    def __exit__(
        self, kind: "type[BaseException] | None", error: BaseException | None, _trace: "TracebackType | None"
    ) -> bool:
        self.failed = isinstance(error, Exception)
        if self.failed and error is not None:
            self._faults.note(error, self._doing)
        return self.failed


def append_note(folder: str, error: BaseException, doing: str) -> None:
    """Append a note to the leg's folder; do nothing if the folder is gone or full."""
    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    text = "\n".join([f"at {moment}", f"doing {doing}", *render_error(error)]) + "\n\n"
    try:
        fd = os.open(
            f"{folder}/{NOTES_FILE}",
            os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW,
            0o600,
        )
        try:
            os.write(fd, text.encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except OSError:
        return


IN = select.EPOLLIN
OUT = select.EPOLLOUT
_NEVER = float("inf")
GONE = select.EPOLLHUP | select.EPOLLERR
# What cannot be dealt with now is looked at again after this, not at once and for ever.
REST_S = 0.1


class Loop:
    """Calls handlers with what is ready on their descriptors, and timers when due, until `stop`.

    What one of them raises is noted and ends that event only.
    """

    __slots__ = (
        "_epoll",
        "_faults",
        "_handlers",
        "_let_go",
        "_resting",
        "_running",
        "_soonest",
        "_timers",
        "_wanted",
    )

    def __init__(self, faults: Faults) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._let_go: dict[int, Callable[[], None]] = {}
        self._wanted: dict[int, int] = {}
        self._resting: set[int] = set()
        self._timers: dict[object, tuple[float, Callable[[], None]]] = {}
        self._faults = faults
        self._soonest = _NEVER
        self._running = True

    def watch(
        self,
        fd: int,
        events: int,
        handler: "Callable[[int], None]",
        let_go: "Callable[[], None] | None" = None,
    ) -> None:
        """Call `handler(ready)` from now on; hang-ups and errors are always reported.

        If a handler raises, `let_go()` is called, which forgets the descriptor; without it the descriptor is
        watched again after a rest. Raise OSError if it cannot be watched; then it is not.
        """
        self._epoll.register(fd, events)
        self._handlers[fd] = handler
        self._wanted[fd] = events
        if let_go is not None:
            self._let_go[fd] = let_go

    def want(self, fd: int, events: int) -> None:
        """Change the events that are waited for on a watched descriptor."""
        if self._wanted.get(fd, events) != events:
            self._wanted[fd] = events
            if fd not in self._resting:
                self._epoll.modify(fd, events)

    def rest(self, fd: int) -> None:
        """Stop watching a descriptor for a moment: what is ready there cannot be handled now."""
        if fd in self._handlers and fd not in self._resting:
            self._resting.add(fd)
            self._epoll.unregister(fd)
            self.after(("rest", fd), REST_S, lambda: self._rise(fd))

    def _rise(self, fd: int) -> None:
        self._resting.discard(fd)
        if fd in self._handlers:
            self._epoll.register(fd, self._wanted[fd])

    def forget(self, fd: int) -> None:
        """Stop watching; call it before closing the descriptor. Harmless if it is not watched."""
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
        """Cancel the timer of that name, if there is one."""
        self._timers.pop(name, None)

    def stop(self) -> None:
        """Leave `run` when the current events are handled."""
        self._running = False

    def run(self) -> None:
        """Serve until `stop`."""
        poll, handlers, monotonic = self._epoll.poll, self._handlers, time.monotonic
        guard = self._faults.guard("an event")
        while self._running:
            # A cancelled timer may wake the loop once for nothing; that is cheaper than looking for the next.
            wait_s = -1.0 if self._soonest == _NEVER else max(0.0, self._soonest - monotonic())
            for fd, ready in poll(wait_s):
                handler = handlers.get(fd)
                if handler is not None:
                    with guard:
                        handler(ready)
                    if guard.failed:
                        self._recover(fd)
            if self._soonest <= monotonic():
                self._ring(monotonic())

    def _recover(self, fd: int) -> None:
        """Call the descriptor's `let_go`; without one, watch it again after a rest."""
        let_go = self._let_go.get(fd)
        if let_go is None:
            self.rest(fd)
            return
        with self._faults.guard("letting go") as guard:
            let_go()
        if guard.failed:
            # What is left of it must not come again.
            self.forget(fd)

    def _ring(self, now: float) -> None:
        for name, (due, call) in list(self._timers.items()):
            if due <= now and self._timers.get(name) == (due, call):
                del self._timers[name]
                with self._faults.guard("a timer"):
                    call()
        self._soonest = min((due for due, _ in self._timers.values()), default=_NEVER)
