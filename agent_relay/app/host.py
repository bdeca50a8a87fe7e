"""The host of one session: takes what happens in turn, journals what follows, performs the effects."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent_relay.app.keeping import Keeper
from agent_relay.app.threads import OwnThread
from agent_relay.domain.effect import Effect, Happened
from agent_relay.domain.errors import RelayError, StaleOwnerError
from agent_relay.domain.event import (
    Body,
    Event,
    LegEnded,
    LegStarting,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SignalSeen,
)
from agent_relay.domain.handoff_event import (
    HandoffBegun,
    HandoffConfirmed,
    PacketPublished,
    PredecessorStopped,
)
from agent_relay.domain.session import Session
from agent_relay.logic.failing import build_failure
from agent_relay.logic.fold import fold_event, fold_events
from agent_relay.logic.machine import step
from agent_relay.logic.outcome import Outcome, World
from agent_relay.system.clock import Clock
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
_RETRY_S = 5.0
"""How long a host waits before it tries again what a full disk refused."""
_LOOK_S = 1.0
"""How long who looks waits for a disk that has taken a line and does not say so."""
_OUR_MISTAKE = "agent-relay made a mistake; a crash report was written"


@dataclass(frozen=True, slots=True)
class _Item:
    happened: Happened | Outcome
    answer: "asyncio.Future[Session] | None" = None


Perform = Callable[[Effect], Awaitable[Happened | None]]


class Host:
    """One session at work. Everything that happens to it goes through `tell` or `ask`, one at a time.

    What was decided is journalled to its last line before anything else is looked at: while the disk
    refuses, the session waits, `trouble` says for what, and whoever asks is told at once.
    """

    def __init__(
        self,
        journal: Keeper,
        clock: Clock,
        *,
        build_world: Callable[[Session], Awaitable[World]],
        perform: Perform,
        redact: Callable[[Body], Body],
        changed: Callable[[Session], None],
        report: Callable[[BaseException], None],
        retry_s: float = _RETRY_S,
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
        self._redact = redact
        self._changed = changed
        self._report = report
        self._retry_s = retry_s
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._line = asyncio.Lock()
        # A session's lines wait for its own disk only, whatever the daemon's other threads hang in.
        self._thread = OwnThread("journal")
        self._effects: set[asyncio.Task[None]] = set()
        self._pump: asyncio.Task[None] | None = None
        self._refusal: RelayError | None = None
        self._is_working = False

    @property
    def events(self) -> Sequence[Event]:
        """What the journal holds."""
        return self._journal.events

    @property
    def refusal(self) -> str:
        """Why nothing can be journalled now; empty while it can."""
        return self._refusal.sentence if self._refusal is not None else ""

    @property
    def is_idle(self) -> bool:
        """Whether everything told so far was worked on; effects may still be performed."""
        return self._queue.empty() and not self._is_working

    async def look(self) -> Session:
        """The session with all that its journal shows by now.

        Others read a line as soon as it is on disk: nobody may be told less here than they know from there.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S), self._line:
                pass
        return self.session

    def start(self) -> None:
        """From now on what is told is worked on."""
        self._pump = asyncio.create_task(self._run(), name=f"host {self.session.id}")

    async def close(self) -> None:
        """Nothing runs any more; the journal is given up. Agents and holders are left as they are."""
        tasks = [*self._effects, *([self._pump] if self._pump else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._refusal = RelayError(f"session {self.session.id} is not at work any more")
        self._refuse_waiting(self._refusal)
        self._thread.close()
        self._journal.close()

    def tell(self, happened: Happened | Outcome) -> None:
        """`happened` will be worked on in turn; an outcome is journalled as it is."""
        self._queue.put_nowait(_Item(happened))

    async def ask(self, happened: Happened | Outcome) -> Session:
        """The session after `happened` was journalled, its effects begun.

        Raises RelayError where it cannot be: then nothing has changed, or the disk refused in the middle
        and the rest follows as soon as it can.
        """
        if self._refusal is not None:
            raise self._refusal
        answer: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Item(happened, answer))
        return await answer

    async def _run(self) -> None:
        while True:
            item = await self._queue.get()
            self._is_working = True
            try:
                await self._work(item)
            except RelayError as error:
                if item.answer is None:
                    self.trouble = error.sentence
                    _log.warning("refused session=%s why=%s", self.session.id, type(error).__name__)
                _answer(item, error)
            except Exception as error:  # noqa: BLE001 - the root of the session's task: the next happening must still be heard
                self.trouble = _OUR_MISTAKE
                self._report(error)
                _answer(item, error)
            else:
                _answer(item, self.session)
            self._is_working, self._refusal = False, None

    async def _work(self, item: _Item) -> None:
        happened = item.happened
        if isinstance(happened, Outcome):
            outcome = happened
        else:
            outcome = step(self.session, happened, await self._build_world(self.session))
        for index, body in enumerate(outcome.bodies):
            await self._write_at_last(body, item, is_first=index == 0)
        if outcome.bodies:
            self.trouble = ""
            self._changed(self.session)
        for effect in outcome.effects:
            task = asyncio.create_task(self._do(effect), name=f"{type(effect).__name__} {self.session.id}")
            self._effects.add(task)
            task.add_done_callback(self._effects.discard)

    async def _write_at_last(self, body: Body, item: _Item, *, is_first: bool) -> None:
        """`body` is journalled, however long the disk takes to let us.

        Deciding anew after half of an outcome would decide from a state no outcome ends in. Raises
        RelayError where the first line of something asked for is refused, StaleOwnerError at any.
        """
        while True:
            try:
                return await self._write(body)
            except StaleOwnerError:
                raise
            except RelayError as error:
                if is_first and item.answer is not None:
                    raise
                _answer(item, error)
                self._refuse_waiting(error)
                if self._refusal is None:
                    self._refusal, self.trouble = error, error.sentence
                    _log.warning("disk-refuses session=%s line=%s", self.session.id, body.name)
                    self._changed(self.session)
            await asyncio.sleep(self._retry_s)

    def _refuse_waiting(self, error: RelayError) -> None:
        """Who asks and would wait for the disk knows why instead; what was told stays, in its order."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for item in waiting:
            if item.answer is None:
                self._queue.put_nowait(item)
            _answer(item, error)

    async def _write(self, told: Body) -> None:
        body = self._redact(told)
        generation = body.generation if isinstance(body, LegStarting) else self.session.generation
        durable = isinstance(body, _DURABLE) or (isinstance(body, SignalSeen) and body.decides)
        at = self._clock.now()
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_event(self.session, Event(self.session.number + 1, at, generation, body))
        pause_at(f"before {body.name}")
        async with self._line:
            await self._thread.run(self._journal.append, body, at=at, generation=generation, durable=durable)
            pause_at(f"after {body.name}")
            if folded is not None:
                self.session = folded

    async def _do(self, effect: Effect) -> None:
        try:
            pause_at(f"before {type(effect).__name__}")
            happened = await self._perform(effect)
            pause_at(f"after {type(effect).__name__}")
        except Exception as error:  # noqa: BLE001 - the root of an effect's task: whoever waits for its outcome must hear of one
            self.trouble = _OUR_MISTAKE
            self._report(error)
            happened = build_failure(effect, _OUR_MISTAKE)
        if happened is not None:
            self.tell(happened)


def _answer(item: _Item, answer: Session | Exception) -> None:
    if item.answer is None or item.answer.done():
        return
    if isinstance(answer, Exception):
        item.answer.set_exception(answer)
    else:
        item.answer.set_result(answer)
