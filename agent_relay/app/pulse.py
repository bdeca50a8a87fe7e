"""Wakes whoever follows a session: something of it changed, or its agent said something."""

import asyncio
import contextlib


class Pulse:
    """Use it from the event loop only."""

    def __init__(self) -> None:
        self._next: asyncio.Future[None] | None = None

    def beat(self) -> None:
        """Everybody who listens is woken."""
        waiting, self._next = self._next, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    def listen(self) -> "asyncio.Future[None]":
        """Done at the next beat; ask for it before looking, and no beat is missed."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        return self._next


async def wait_for(beat: "asyncio.Future[None]", limit_s: float) -> None:
    """The beat came, or `limit_s` seconds passed; others may go on waiting for it."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(limit_s):
            await asyncio.shield(beat)
