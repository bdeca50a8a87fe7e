"""Deliver the records of each living leg to its listener, in order; one set of sources per daemon."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.limits import Record
from agent_relay.sources.live._source_reader import build_key
from agent_relay.sources.live._source_set import SourceSet
from agent_relay.system.clock import Clock

Hear = Callable[[list[Record]], Awaitable[None]]


class RecordDispatcher:
    """The sources of every living leg. Create it in the event loop; `report` gets listeners' errors."""

    def __init__(self, report: Callable[[BaseException], None], clock: Clock | None = None) -> None:
        self._report = report
        self._sources = SourceSet(self._heard, clock=clock)
        self._queues: dict[str, asyncio.Queue[list[Record]]] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def follow(self, place: LegPlace, specs: Sequence[SourceSpec], hear: Hear, *, is_new: bool) -> None:
        """Deliver the leg's records to `hear`, in order, one batch at a time.

        A leg that is not new is read from its start again: what its first daemon had read is known from the
        journal, and nothing written between two daemons is missed.
        """
        queue: asyncio.Queue[list[Record]] = asyncio.Queue()
        self._queues[place.leg_id] = queue
        self._tasks[place.leg_id] = asyncio.create_task(self._drain(queue, hear), name=f"hear {place.leg_id}")
        self._sources.add(place, specs, state=None if is_new else {build_key(spec): {} for spec in specs})

    def update(self, leg_id: str, **values: str) -> None:
        """Add values learnt about the leg."""
        self._sources.update(leg_id, **values)

    async def poke(self, leg_id: str) -> None:
        """Read the leg's sources now, and return when `hear` has processed their records."""
        self._sources.poke(leg_id)
        await self._settle(leg_id)

    async def leave(self, leg_id: str) -> None:
        """Read the leg's sources a last time, deliver the records, and stop following the leg."""
        await self._sources.remove(leg_id)
        await self._settle(leg_id)
        self._queues.pop(leg_id, None)
        task = self._tasks.pop(leg_id, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Stop reading all sources."""
        await self._sources.close()
        for task in self._tasks.values():
            task.cancel()

    async def _settle(self, leg_id: str) -> None:
        queue = self._queues.get(leg_id)
        task = self._tasks.get(leg_id)
        if queue is not None and task is not None and not task.done():
            await queue.join()

    def _heard(self, leg_id: str, records: list[Record]) -> None:
        queue = self._queues.get(leg_id)
        if queue is not None:
            queue.put_nowait(records)

    async def _drain(self, queue: asyncio.Queue[list[Record]], hear: Hear) -> None:
        while True:
            records = await queue.get()
            try:
                await hear(records)
            except Exception as error:  # noqa: BLE001 - the root of the leg's hearing: one strange record must not make it deaf
                self._report(error)
            finally:
                queue.task_done()
