"""Follow the sources of living legs, and give each leg the records of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

import msgspec

from agent_relay.agents.source_paths import LegPlace
from agent_relay.domain.documents.adapter import SourceSpec
from agent_relay.domain.errors import ConfigurationError
from agent_relay.domain.limits import Record, Source
from agent_relay.sources._event_reader import EventReader
from agent_relay.sources._folder_watch import FolderWatch
from agent_relay.sources._source_reader import SourceReader, build_key
from agent_relay.system.clock import Clock, JumpingClock, SystemClock

OnRecords = Callable[[str, list[Record]], None]

# A log entry written in one go is whole by then; an agent's limit waits no longer for it.
QUIET_S = 0.05
# Walking an agent's folders for new files is the only costly look; screens settle ten times a second.
WALK_EVERY_S = 1.0
# What belongs to a settled screen may be written after it, and its event be lost or never come.
LATE_S = (1.0, 4.0)
FIRST_S = 0.05
"""Seconds until a new leg's sources are first looked at: whoever started its agent is answered first."""
_FIRST = "first"
_ARM_TRIES = 8


class _Leg(msgspec.Struct):
    place: LegPlace
    readers: list[SourceReader]
    streams: list[EventReader] = msgspec.field(default_factory=list)
    walked_at: float = 0.0
    timers: dict[str, asyncio.TimerHandle] = msgspec.field(default_factory=dict)


class SourceSet:
    """The sources of every leg of one daemon; belongs to one event loop and is used only there.

    `on_records(leg_id, records)` is called in that loop whenever a leg's sources have new records; the
    records of one file come in order. Between a call's end and the next one `state(leg_id)` is exactly
    what was delivered: if it is stored by then and given to `add` after a crash, nothing is lost or repeated
    (except by event streams: they deliver the present state again). `clock` defaults to the machine's.
    """

    def __init__(
        self, on_records: OnRecords, *, is_watching: bool = True, clock: Clock | None = None
    ) -> None:
        self._on_records = on_records
        self._clock = JumpingClock(clock or SystemClock())
        self._loop = asyncio.get_running_loop()
        self._legs: dict[str, _Leg] = {}
        self._watch = FolderWatch(self._changed, self._look_at_all) if is_watching else None

    def add(
        self, place: LegPlace, specs: Sequence[SourceSpec], *, state: Mapping[str, object] | None = None
    ) -> None:
        """Read a leg's sources from now on; call it before the agent starts, so that nothing is missed.

        What its files hold now is noted; they are first looked at, and their folders watched, once the agent
        has had a moment to start. `state` is for a leg that was already being read. Raises
        ConfigurationError if a source's path or URL is invalid.
        """
        readers = [
            SourceReader(spec, place, state=_get_state(state, spec))
            for spec in specs
            if spec.framing != "sse"
        ]
        readers.sort(key=lambda reader: Source(reader.spec.role) is Source.PROXY)
        leg = _Leg(place, readers)
        try:
            for spec in specs:
                if spec.framing == "sse":
                    leg.streams.append(EventReader(spec, place, partial(self._deliver, place.leg_id)))
        except ConfigurationError:
            for stream in leg.streams:
                stream.stop()
            raise
        self._legs[place.leg_id] = leg
        if state is None:
            self._later(leg, _FIRST, FIRST_S, lambda: self._look(place.leg_id, is_walking=True))
        else:
            self._look(place.leg_id, is_walking=True)

    def update(self, leg_id: str, **values: str) -> None:
        """Add values learnt about a leg (its native id, its pid) to those known.

        Files that no longer match because of it are read to their ends first.
        """
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        known = leg.place.values
        is_new = _FIRST in leg.timers
        # Before the first look, a value that changes none of those known drops no file.
        is_early = is_new and all(known.get(name, new) == new for name, new in values.items())
        if not is_early:
            self._look(leg_id, is_walking=is_new)
        leg.place = msgspec.structs.replace(leg.place, values={**known, **values})
        for reader in leg.readers:
            reader.update(leg.place)
        for stream in leg.streams:
            stream.update(leg.place)
        if not is_early:
            self._look(leg_id, is_walking=True)

    def poke(self, leg_id: str) -> None:
        """Look now: the screen settled, so whatever belongs to it is written, with or without an event."""
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        for stream in leg.streams:
            stream.nudge()
        self._look(leg_id, is_walking=self._may_walk(leg))
        self._look_late(leg_id, LATE_S)

    def _look_late(self, leg_id: str, waits: tuple[float, ...]) -> None:
        """Look again after each of `waits`, counted from the newest poke; later only events count."""
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        if timer := leg.timers.pop("late", None):
            timer.cancel()
        if waits:

            def look() -> None:
                self._look(leg_id, is_walking=self._may_walk(leg))
                self._look_late(leg_id, waits[1:])

            self._later(leg, "late", waits[0], look)

    def state(self, leg_id: str) -> dict[str, object]:
        """Return what `add` needs to continue; plain JSON values, file names with surrogate escapes."""
        leg = self._legs.get(leg_id)
        return {build_key(reader.spec): reader.state() for reader in leg.readers} if leg else {}

    async def remove(self, leg_id: str) -> None:
        """Read a leg's sources a last time, open log entries included, and close them."""
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        self._look(leg_id, is_walking=True)
        while any(reader.has_more for reader in leg.readers):
            self._look(leg_id)
        self._flush(leg_id)
        self._legs.pop(leg_id, None)
        for timer in leg.timers.values():
            timer.cancel()
        for stream in leg.streams:
            await stream.close()
        if self._watch:
            self._watch.want(leg_id, set())

    async def close(self) -> None:
        """Close all sources without a last look: another daemon will continue."""
        legs, self._legs = self._legs, {}
        for leg in legs.values():
            for timer in leg.timers.values():
                timer.cancel()
            for stream in leg.streams:
                await stream.close()
        if self._watch:
            self._watch.close()

    def _changed(self, paths: set[str]) -> None:
        """Handle changes in watched folders: follow the files that changed, walk new folders."""
        for leg_id, leg in list(self._legs.items()):
            concerned = [path for path in paths if any(_concerns(reader, path) for reader in leg.readers)]
            if not concerned:
                continue
            met = [reader.meet(path) for reader in leg.readers for path in concerned]
            self._look(leg_id, is_walking=not any(met) and self._may_walk(leg))

    def _may_walk(self, leg: _Leg) -> bool:
        """Tell whether the leg's folders may be walked now; if they just were, schedule it."""
        wait_s = leg.walked_at + WALK_EVERY_S - self._loop.time()
        if wait_s <= 0:
            return True
        if not all(reader.is_literal for reader in leg.readers):
            self._later(leg, "walk", wait_s, lambda: self._look(leg.place.leg_id, is_walking=True))
        return False

    def _read_clock(self) -> None:
        """Move the legs' starts back if the wall clock was set back.

        What they write from now on is dated before their starts.
        """
        _, jump = self._clock.read()
        if jump is None or not jump.is_back:
            return
        for leg in self._legs.values():
            leg.place = msgspec.structs.replace(leg.place, started_at=min(leg.place.started_at, jump.since))
            for reader in leg.readers:
                reader.update(leg.place)

    def _look_at_all(self) -> None:
        """Look at what every leg has, and watch its folders: until now nothing was."""
        for leg_id in list(self._legs):
            self._look(leg_id, is_walking=True)

    def _look(self, leg_id: str, *, is_walking: bool = False) -> None:
        self._read_clock()
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        self._arm(leg)
        if is_walking:
            leg.walked_at = self._loop.time()
        for reader in leg.readers:
            if is_walking or reader.is_literal:
                reader.resolve()
        self._arm(leg)
        self._deliver(leg_id, _read(leg, SourceReader.look))
        if any(reader.has_more for reader in leg.readers):
            self._later(leg, "more", 0, lambda: self._look(leg_id))
        if any(reader.is_waiting for reader in leg.readers):
            self._later(leg, "flush", QUIET_S, lambda: self._flush(leg_id))

    def _arm(self, leg: _Leg) -> None:
        """Watch the leg's folders, and repeat that until no new one appears meanwhile.

        Changes in a folder that appeared meanwhile would be missed.
        """
        if self._watch is None:
            return
        for _ in range(_ARM_TRIES):
            folders = set().union(*(reader.folders for reader in leg.readers))
            self._watch.want(leg.place.leg_id, folders)
            if folders == set().union(*(reader.folders for reader in leg.readers)):
                return

    def _flush(self, leg_id: str) -> None:
        self._read_clock()
        leg = self._legs.get(leg_id)
        if leg is None:
            return
        self._deliver(leg_id, _read(leg, lambda reader: [*reader.look(), *reader.flush()]))
        if any(reader.has_more for reader in leg.readers):
            self._later(leg, "more", 0, lambda: self._look(leg_id))

    def _later(self, leg: _Leg, what: str, wait_s: float, do: Callable[[], None]) -> None:
        def run() -> None:
            leg.timers.pop(what, None)
            do()

        if what not in leg.timers:
            leg.timers[what] = self._loop.call_later(wait_s, run)

    def _deliver(self, leg_id: str, records: list[Record]) -> None:
        if records and leg_id in self._legs:
            self._on_records(leg_id, records)


def _read(leg: _Leg, read: Callable[[SourceReader], Sequence[Record]]) -> list[Record]:
    """Return what `read` finds, the proxy's first, whose file is read last.

    The proxy notes a refusal before the agent has all of it: it is heard before what the agent says of it.
    """
    found = [record for reader in leg.readers for record in read(reader)]
    return sorted(found, key=lambda record: record.source is not Source.PROXY)


def _concerns(reader: SourceReader, path: str) -> bool:
    """Check whether a change at `path` can matter: it may be a file, or a folder on the way to one."""
    pattern = reader.pattern
    return pattern is not None and (pattern.matches(path) or pattern.may_lie_below(path))


def _get_state(state: Mapping[str, object] | None, spec: SourceSpec) -> Mapping[str, object] | None:
    found = (state or {}).get(build_key(spec))
    return found if isinstance(found, Mapping) else None


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
