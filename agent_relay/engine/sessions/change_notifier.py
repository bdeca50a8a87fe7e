"""Counter that waiters await, incremented whenever a session changed or its agent showed something."""

import asyncio
import contextlib
from collections.abc import Callable

_LOOK_S = 0.25
"""How often something is looked at without a beat: not all that is waited for makes one."""


class ChangeNotifier:
    """Use it from the event loop only.

    `number` is the newest beat's, 0 before the first. Beats go on to the pulse `above` and are counted there.
    """

    def __init__(self, above: "ChangeNotifier | None" = None) -> None:
        self.number = 0
        self._above = above
        self._next: asyncio.Future[None] | None = None

    def beat(self) -> None:
        """Everybody who listens is woken."""
        if self._above is not None:
            self._above.beat()
        self.number = self.number + 1 if self._above is None else self._above.number
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def listen(self) -> "asyncio.Future[None]":
        """Done at the next beat; ask for it before looking, and no beat is missed."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next

    async def wait_while(self, is_so: Callable[[], bool], limit_s: float) -> bool:
        """Whether it ended: `is_so` is false, or `limit_s` seconds passed."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + limit_s
        while True:
            beat = self.listen()
            if not is_so():
                return True
            if clock() >= deadline:
                return False
            await wait_for(beat, min(deadline - clock(), _LOOK_S))


async def wait_for(beat: "asyncio.Future[None]", limit_s: float) -> None:
    """The beat came, or `limit_s` seconds passed; others may go on waiting for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await asyncio.shield(beat)
