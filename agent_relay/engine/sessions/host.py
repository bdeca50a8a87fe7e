"""The host of one session: takes inputs in turn, journals the resulting events, starts the effects."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from agent_relay.domain.effects import Effect, StopLeg
from agent_relay.domain.errors import RelayError, StaleOwnerError
from agent_relay.domain.events.session import (
    Body,
    Event,
    LegEnded,
    LegStarting,
    SessionCreated,
    SessionEnded,
    SessionRested,
    SignalSeen,
)
from agent_relay.domain.events.work import HandoffBegun, HandoffConfirmed, PacketPublished, PredecessorStopped
from agent_relay.domain.inputs import Input, Spawned, StopAsked
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine.services import Services
from agent_relay.engine.threads import (
    BackgroundTasks,
    ChangeNotifier,
    DedicatedThread,
    Failed,
    TurnFollowers,
    attempt,
)
from agent_relay.session.decision import DecisionContext, Outcome, build_failure, is_wanted, may_try_again
from agent_relay.session.fold import fold_event, fold_events
from agent_relay.session.machine import step
from agent_relay.store.session_journals import SessionJournal
from agent_relay.system.failures import find_passing, find_shortage
from agent_relay.system.processes import pause_at

if TYPE_CHECKING:
    from agent_relay.engine._effect_runner import EffectRunner

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
_RETRY_S = 0.5
"""Pause before a write that a full disk refused is tried again: nothing signals that there is room."""
_SHARES = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
"""Waits between tries of an effect, as multiples of `_RETRY_S`: half a minute in all; the last repeats."""
_LOOK_S = 1.0
"""Longest wait, in seconds, for a disk that has taken a line and does not confirm it."""
_OUR_MISTAKE = "agent-relay made a mistake; a crash report was written"


class _Item(msgspec.Struct, frozen=True):
    happened: Input | Outcome
    answer: "asyncio.Future[Session] | None" = None
    ready: "Callable[[], Awaitable[None]] | None" = None


class Host:
    """One session at work. Everything that happens to it goes through `tell` or `ask`, one at a time.

    A decision is journalled to its last line before anything else is handled: while the disk refuses, the
    session waits, `trouble` says for what, and every caller of `ask` gets the reason at once.
    `runner` performs its effects, `changes` counts its changes and its agent's output, `followers` read its
    headless turn.
    """

    def __init__(
        self,
        services: Services,
        journal: SessionJournal,
        build_runner: "Callable[[Host], EffectRunner]",
        *,
        changed: Callable[[Session], None],
        above: ChangeNotifier | None = None,
        retry_s: float = _RETRY_S,
    ) -> None:
        """Make the host of the journal's session; `above` counts its changes, too, `changed` gets them.

        Raises RelayError if the journal's history cannot be used.
        """
        session = fold_events(journal.events)
        if session is None:
            raise RelayError(f"{journal.path} does not begin with a session")
        self.session = session
        self.changes = ChangeNotifier(above)
        self.followers = TurnFollowers()
        self._trouble = ""
        self._services = services
        self._journal = journal
        self._changed = changed
        self._retry_s = retry_s
        self._queue: asyncio.Queue[_Item] = asyncio.Queue()
        self._line = asyncio.Lock()
        # A session's lines wait for its own disk only, whatever the daemon's other threads hang in.
        self._thread = DedicatedThread("journal")
        self._tasks = BackgroundTasks()
        self._refusal: RelayError | None = None
        self._is_working = False
        self._asked_again = asyncio.Event()
        self._tried_again = asyncio.Event()
        self.runner = build_runner(self)

    @property
    def trouble(self) -> str:
        """The reason why the session does not go on, for the user; empty if there is none."""
        return self._trouble or self.runner.trouble

    @property
    def events(self) -> Sequence[Event]:
        """The journal's events."""
        return self._journal.events

    @property
    def refusal(self) -> str:
        """The reason why nothing can be journalled now; empty while it can."""
        return self._refusal.sentence if self._refusal is not None else ""

    @property
    def is_idle(self) -> bool:
        """True if every input so far was processed; effects may still be running."""
        return self._queue.empty() and not self._is_working

    @property
    def is_ending(self) -> bool:
        """True while an end is under way that will be complete in a moment."""
        if self.refusal:
            return False
        return self.session.state is State.STOPPING or not self.is_idle or self.runner.is_collecting

    @property
    def is_leaving(self) -> bool:
        """True while the end of its last turn is not complete.

        Followers of a turn learn of its end before its agent is gone; a journal between two lines of one
        decision is no state to decide anything from.
        """
        leg = self.session.living_leg
        return self.is_ending or (leg is not None and leg.headless and self.session.open_turn is None)

    async def await_end(self, limit_s: float) -> bool:
        """Wait until the end of its last turn is complete, at most so long; return whether it is."""
        return await self.changes.wait_while(lambda: self.is_leaving, limit_s)

    async def look(self) -> Session:
        """Return the session with everything its journal shows by now.

        Other programs read a line as soon as it is on disk: a caller must not learn less here than from
        there.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S), self._line:
                pass
        return self.session

    def start(self) -> None:
        """Begin to process inputs."""
        self._tasks.begin(self._run(), name=f"host {self.session.id}")

    async def stop_agent(self) -> Input | None:
        """Stop its agent although nothing can be written; return what is to be journalled of that later."""
        living = self.session.living_leg
        return await self.runner.perform(StopLeg(living.id)) if living is not None else None

    async def close(self) -> None:
        """Stop everything of it in this process; agents and holders are left as they are."""
        await self.runner.close()
        await self._tasks.close()
        self._refusal = RelayError(f"session {self.session.id} is not at work any more")
        self._refuse_waiting(self._refusal)
        self._thread.close()
        self._journal.close()

    def tell(self, happened: Input | Outcome, *, ready: Callable[[], Awaitable[None]] | None = None) -> None:
        """Queue `happened` to be processed in turn; an outcome is journalled as it is.

        `ready` is awaited before the decision, and everything queued later waits with it.
        """
        self._queue.put_nowait(_Item(happened, ready=ready))

    async def check(self, happened: Input) -> None:
        """Raise what `ask` would raise for `happened` now; change nothing."""
        step(self.session, happened, await self.runner.build_context(self.session))

    async def ask(self, happened: Input | Outcome) -> Session:
        """Return the session after `happened` was journalled and its effects were begun.

        A write that the disk refused before is tried again first: there may be room by now. Raises RelayError
        if it cannot be done: then either nothing has changed, or the disk refused in the middle and the rest
        follows as soon as it can.
        """
        if self._refusal is not None:
            await self._try_again()
        if self._refusal is not None:
            raise self._refusal
        answer: asyncio.Future[Session] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait(_Item(happened, answer))
        return await answer

    async def _run(self) -> None:
        while True:
            item = await self._queue.get()
            self._is_working = True
            result = await attempt(self._work(item))
            if isinstance(result, Failed):
                self._note_failure(item, result.error)
            _answer(item, result.error if isinstance(result, Failed) else self.session)
            self._is_working, self._refusal = False, None
            self._end_try()

    def _note_failure(self, item: _Item, error: Exception) -> None:
        """Keep why nothing came of the item, unless its requester is told; report a bug of ours."""
        if not isinstance(error, RelayError):
            self._trouble = _OUR_MISTAKE
            self._services.report(error)
        elif item.answer is None:
            self._trouble = error.sentence
            _log.warning("refused session=%s why=%s", self.session.id, type(error).__name__)

    def note_activity(self) -> None:
        """Tell whoever waits for a change that the agent said or showed something."""
        self.changes.notify()

    def _note_change(self) -> None:
        self.runner.see(self.session)
        self.changes.notify()
        self._changed(self.session)

    async def _try_again(self) -> None:
        """Cause another try of what the disk refused; wait up to 1 s for its result."""
        tried = self._tried_again
        self._asked_again.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_S):
                await tried.wait()

    async def _await_retry(self) -> None:
        """Wait until a refused write is to be tried again: a caller asks, or `retry_s` seconds passed."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._retry_s):
                await self._asked_again.wait()
        self._asked_again.clear()

    def _end_try(self) -> None:
        tried, self._tried_again = self._tried_again, asyncio.Event()
        tried.set()

    async def _work(self, item: _Item) -> None:
        if item.ready is not None:
            await item.ready()
        happened = item.happened
        if isinstance(happened, Outcome):
            outcome = happened
        else:
            outcome = step(self.session, happened, await self._read_context(item, happened))
        for index, body in enumerate(outcome.bodies):
            await self._write_at_last(body, item, is_first=index == 0)
        if outcome.bodies:
            self._trouble = ""
            self._note_change()
        for effect in outcome.effects:
            self._tasks.begin(self._do(effect), name=f"{type(effect).__name__} {self.session.id}")

    async def _read_context(self, item: _Item, happened: Input) -> DecisionContext:
        """Return what the state machine may know now, however long reading it takes.

        An end needs no facts and gets none if they cannot be read. Any other input must not be lost for that:
        it waits until they can be read, but if somebody asked for it, RelayError is raised instead.
        """
        # Whoever started the agent waits for this one.
        may_stop_agent = not isinstance(happened, Spawned)
        while True:
            context = await attempt(self.runner.build_context(self.session, may_stop_agent=may_stop_agent))
            if not isinstance(context, Failed):
                return context
            if isinstance(happened, StopAsked) or self.session.state is State.STOPPING:
                return DecisionContext(self._services.clock.now(), {}, "", "")
            why = self._tell_trouble(context.error, is_new=self._refusal is None)
            if item.answer is not None:
                raise RelayError(why) from context.error
            self._refusal = RelayError(why)
            self._refuse_waiting(self._refusal)
            await self._await_retry()

    async def _write_at_last(self, body: Body, item: _Item, *, is_first: bool) -> None:
        """Journal `body`, however long the disk refuses.

        Deciding anew after half of an outcome would decide from a state in which no outcome ends. Raises
        RelayError if the first line of something asked for is refused, StaleOwnerError at any line.
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
                    self._refusal, self._trouble = error, error.sentence
                    _log.warning("disk-refuses session=%s line=%s", self.session.id, body.name)
                    self._note_change()
            await self._await_retry()

    def _refuse_waiting(self, error: RelayError) -> None:
        """Fail the queued requests with `error`; keep the inputs that nobody waits for, in their order."""
        waiting = [self._queue.get_nowait() for _ in range(self._queue.qsize())]
        for item in waiting:
            if item.answer is None:
                self._queue.put_nowait(item)
            _answer(item, error)
        self._end_try()

    async def _write(self, unredacted: Body) -> None:
        body = await self.runner.redact(unredacted)
        generation = body.generation if isinstance(body, LegStarting) else self.session.generation
        durable = isinstance(body, _DURABLE) or (isinstance(body, SignalSeen) and body.decides)
        at = self._services.clock.now()
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_event(self.session, Event(self.session.number + 1, at, generation, body))
        pause_at(f"before {body.name}")
        async with self._line:
            await self._thread.run(self._journal.append, body, at=at, generation=generation, durable=durable)
            pause_at(f"after {body.name}")
            if folded is not None:
                self.session = folded

    async def _do(self, effect: Effect) -> None:
        why, is_reported = "", False
        for tries in count():
            result = await attempt(self._perform(effect))
            if not isinstance(result, Failed):
                self._trouble = "" if self._trouble == why else self._trouble
                break
            why = self._tell_trouble(result.error, is_new=not is_reported)
            is_reported = is_reported or why == _OUR_MISTAKE
            passes, lacks = bool(find_passing(result.error)), bool(find_shortage(result.error))
            is_soon = passes and tries < len(_SHARES)
            if not may_try_again(self.session, effect, passes=is_soon, lacks_room=lacks and not passes):
                result = build_failure(effect, why)
                break
            await asyncio.sleep(self._retry_s * _SHARES[min(tries, len(_SHARES) - 1)])
            if not is_wanted(self.session, effect):
                return
        if result is not None and not isinstance(result, Failed):
            self.tell(result)

    async def _perform(self, effect: Effect) -> Input | None:
        pause_at(f"before {type(effect).__name__}")
        happened = await self.runner.perform(effect)
        pause_at(f"after {type(effect).__name__}")
        return happened

    def _tell_trouble(self, error: BaseException, *, is_new: bool) -> str:
        """Return why something cannot be done now, and keep it in `trouble`; report a new bug of ours."""
        if isinstance(error, RelayError):
            why = error.sentence
        elif lacking := find_shortage(error):
            why = f"this machine is short of something agent-relay needs: {lacking}"
        else:
            why = _OUR_MISTAKE
            if is_new:
                self._services.report(error)
        if why != self._trouble:
            self._trouble = why
            _log.warning("not-done session=%s why=%s", self.session.id, type(error).__name__)
            self._note_change()
        return why


def _answer(item: _Item, answer: Session | Exception) -> None:
    if item.answer is None or item.answer.done():
        return
    if isinstance(answer, Exception):
        item.answer.set_exception(answer)
    else:
        item.answer.set_result(answer)
