"""The host of one session: takes what happens in turn, journals what follows, performs the effects."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent_relay.domain.effect import Effect, Happened
from agent_relay.domain.errors import RelayError, StaleOwnerError
from agent_relay.domain.event import (
    Body,
    Event,
    HandoffBegun,
    HandoffConfirmed,
    LegEnded,
    LegStarting,
    PacketPublished,
    PredecessorStopped,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SignalSeen,
)
from agent_relay.domain.session import Session
from agent_relay.logic.fold import fold_event, fold_events
from agent_relay.logic.machine import step
from agent_relay.logic.outcome import Outcome, World
from agent_relay.system.clock import Clock
from agent_relay.system.journal import Journal
from agent_relay.system.pause import pause_at

_log = logging.getLogger(__name__)

_DURABLE = (
    SessionCreated,
    LegStarting,
    HandoffBegun,
    PredecessorStopped,
    PacketPublished,
    HandoffConfirmed,
    LegEnded,
    SessionRested,
    SessionEnded,
)
_RETRY_S = 10.0
"""How long a host waits before it tries again what a full disk refused."""
_TRIES = 6


@dataclass(frozen=True, slots=True)
class _Item:
    happened: Happened | Outcome
    answer: "asyncio.Future[Session] | None" = None
    tries: int = _TRIES


Perform = Callable[[Effect], Awaitable[Happened | None]]


class Host:
    """One session at work. Everything that happens to it goes through `tell` or `ask`, one at a time."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        *,
        build_world: Callable[[Session], Awaitable[World]],
        perform: Perform,
        changed: Callable[[Session], None],
        report: Callable[[BaseException], None],
    ) -> None:
        session = fold_events(journal.events)
        if session is None:
            raise RelayError(f"{journal.path} does not begin with a session")
        self.session = session
        self.trouble = ""
        self._journal = journal
        self._clock = clock
        self._build_world = build_world
        self._perform = perform
        self._changed = changed
        self._report = report
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._effects: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None

    @property
    def events(self) -> Sequence[Event]:
        """What the journal held when this host took it over."""
        return self._journal.events

    def start(self) -> None:
        """From now on what is told is worked on."""
        self._pump = asyncio.create_task(self._run(), name=f"host {self.session.id}")

    async def close(self) -> None:
        """Nothing runs any more; the journal is given up. Agents and holders are left as they are."""
        tasks = [*self._effects, *([self._pump] if self._pump else [])]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._journal.close()

    def tell(self, happened: Happened) -> None:
        """`happened` will be worked on in turn."""
        self._queue.put_nowait(_Item(happened))

    async def ask(self, happened: Happened | Outcome) -> Session:
        """The session after `happened` was journalled, its effects begun.

        Raises RelayError where it cannot be; then nothing has changed.
        """
        answer: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Item(happened, answer, tries=1))
        return await answer

    async def note(self, body: Body) -> None:
        """`body` is journalled as it is: knowledge that decides nothing."""
        await self.ask(Outcome((body,)))

    async def _run(self) -> None:
        while True:
            item = await self._queue.get()
            try:
                await self._work(item)
            except RelayError as error:
                self._refused(item, error)
            except Exception as error:  # noqa: BLE001 - the root of the session's task: the next happening must still be heard
                self.trouble = "agent-relay made a mistake; a crash report was written"
                self._report(error)
                if item.answer is not None and not item.answer.done():
                    item.answer.set_exception(error)
            else:
                self.trouble = ""
                if item.answer is not None and not item.answer.done():
                    item.answer.set_result(self.session)

    def _refused(self, item: _Item, error: RelayError) -> None:
        if item.answer is not None:
            if not item.answer.done():
                item.answer.set_exception(error)
            return
        self.trouble = error.sentence
        _log.warning("refused session=%s why=%s", self.session.id, type(error).__name__)
        if isinstance(error, StaleOwnerError) or item.tries <= 1:
            return
        again = _Item(item.happened, None, item.tries - 1)
        asyncio.get_running_loop().call_later(_RETRY_S, self._queue.put_nowait, again)

    async def _work(self, item: _Item) -> None:
        happened = item.happened
        if isinstance(happened, Outcome):
            outcome = happened
        else:
            outcome = step(self.session, happened, await self._build_world(self.session))
        for body in outcome.bodies:
            await self._write(body)
        if outcome.bodies:
            self._changed(self.session)
        for effect in outcome.effects:
            task = asyncio.create_task(self._do(effect), name=f"{type(effect).__name__} {self.session.id}")
            self._effects.add(task)
            task.add_done_callback(self._effects.discard)

    async def _write(self, body: Body) -> None:
        generation = body.generation if isinstance(body, LegStarting) else self.session.generation
        durable = isinstance(body, _DURABLE) or (isinstance(body, SignalSeen) and body.decides)
        at = self._clock.now()
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_event(self.session, Event(self.session.number + 1, at, generation, body))
        pause_at(f"before {body.name}")
        await asyncio.to_thread(self._journal.append, body, at=at, generation=generation, durable=durable)
        pause_at(f"after {body.name}")
        if folded is not None:
            self.session = folded

    async def _do(self, effect: Effect) -> None:
        try:
            pause_at(f"before {type(effect).__name__}")
            happened = await self._perform(effect)
            pause_at(f"after {type(effect).__name__}")
        except Exception as error:
            self.trouble = f"{type(effect).__name__} failed inside agent-relay"
            self._report(error)
            raise
        if happened is not None:
            self.tell(happened)
