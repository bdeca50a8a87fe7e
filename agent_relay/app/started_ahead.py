"""Programs that the next handoff will need, started before it comes."""

import asyncio

from agent_relay.app.limited_work import prepare_server
from agent_relay.system.holder_start import prepare_spare

AFTER_S = 1.0
"""The first moments of a leg belong to its agent: a program that starts takes a processor for a while."""


class StartedAhead:
    """Starts what builds packets and what will hold the next leg. Use it from the event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Start in a moment what does not run yet."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(_prepare(), name="prepare the next handoff")

    def close(self) -> None:
        """Start nothing any more."""
        if self._task is not None:
            self._task.cancel()


async def _prepare() -> None:
    await asyncio.sleep(AFTER_S)
    await asyncio.to_thread(prepare_spare)
    await asyncio.to_thread(prepare_server)
