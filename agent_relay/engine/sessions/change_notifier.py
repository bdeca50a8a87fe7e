"""Who waits for a session: its changes are counted and awaited, and a headless turn has followers."""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field

_LOOK_S = 0.25
"""How often a condition is checked while no change is counted: not everything that matters is."""
_LOST_S = 60.0
"""A follower of a turn asks three times as often; one silent for longer counts as gone."""


class ChangeNotifier:
    """Wakes waiters at every change. Use it from the event loop only.

    `number` is that of the newest change, 0 before the first. `above` counts them, too.
    """

    def __init__(self, above: "ChangeNotifier | None" = None) -> None:
        self.number = 0
        self._above = above
        self._next: asyncio.Future[None] | None = None

    def notify(self) -> None:
        """Count a change, and wake everybody who waits for one."""
        if self._above is not None:
            self._above.notify()
        self.number = self.number + 1 if self._above is None else self._above.number
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def listen(self) -> "asyncio.Future[None]":
        """Return a future that is done at the next change; get it before looking, to miss none."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    async def wait_while(self, is_so: Callable[[], bool], limit_s: float) -> bool:
        """Wait while `is_so` is true, at most `limit_s` seconds; return whether it became false."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit_s
        while True:
            change = self.listen()
            if not is_so():
                return True
            if clock() >= deadline:
                return False
            await wait_for(change, min(deadline - clock(), _LOOK_S))


async def wait_for(change: "asyncio.Future[None]", limit_s: float) -> None:
    """Wait for the change, at most `limit_s` seconds; others may go on waiting for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await asyncio.shield(change)


@dataclass(slots=True)
class TurnFollowers:
    """Who follows a headless turn, and when each last read from it (monotonic seconds).

    `is_done` once all have read it.
    """

    followers: dict[int, float] = field(default_factory=dict)
    is_done: bool = False

    def begin(self) -> None:
        """Reset for another turn, of which nobody has read anything."""
        self.followers.clear()
        self.is_done = False

    def note(self, follower: int, at_s: float) -> None:
        """Note that `follower` reads on."""
        self.followers[follower] = at_s

    def leave(self, follower: int, at_s: float) -> None:
        """Note that `follower` has read it to its end; one that was silent for a while does not count."""
        self.followers.pop(follower, None)
        self.is_done = all(at_s - last_s > _LOST_S for last_s in self.followers.values())
