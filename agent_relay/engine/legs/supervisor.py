"""Supervise a session's living legs, each to its end, whatever happens to its holder meanwhile."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, MutableMapping
from functools import partial
from typing import TypeVar

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import LegNamed
from agent_relay.domain.inputs import Answered, ClockSetBack, Input, LegGone, SignalFound, Spawned, StateSeen
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.engine.legs import shutdown
from agent_relay.engine.legs.leg_start import KnownSignals, adopt_leg
from agent_relay.engine.legs.limits import BudgetMonitor, EndedRests, WindowRecorder, build_counter
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import BarSender, show_slow_start
from agent_relay.engine.publishing.native_records import find_native
from agent_relay.engine.services import Services, SessionHost
from agent_relay.engine.threads import BackgroundTasks, Failed, attempt
from agent_relay.session.decision import Outcome
from agent_relay.system.failures import find_passing

_Found = TypeVar("_Found")
_log = logging.getLogger(__name__)
_STARTING_S = 5.0
"""Longest wait of a new daemon for a holder whose start was not journalled, in seconds."""
_LOOK_S = 0.1
_AGAIN_S = 0.5
_SLOWEST_S = 30.0
"""Longest pause between two requests to a holder that lives and does not answer."""
_GRACE_S = 15.0
"""Longest silence, in seconds, of an agent that reported the end of its headless turn without exiting."""
_SHORT_S = 600.0
"""Seconds an agent's end waits for what this machine is short of; then it is reported as far as known."""
_REPORTS = 3
"""Most reports, for one leg, of a bug of ours that comes back with every look."""


KeepLast = Callable[[str, Mapping[str, str]], Awaitable[None]]
"""Keeps the last checkpoint of a leg, which was launched with the environment given."""


class LegSupervisor:
    """Supervises the session's legs; `live` are the monitors of the living ones by id.

    `trouble` is what keeps one from being monitored; empty for nothing.
    """

    def __init__(
        self,
        services: Services,
        host: SessionHost,
        live: MutableMapping[str, LegMonitor],
        bar: BarSender,
        keep_last: KeepLast,
    ) -> None:
        """Make the supervisor of the host's session; `keep_last` keeps the checkpoint of a leg that ended."""
        self.trouble = ""
        self._keep_last = keep_last
        self._services = services
        self._host = host
        self._live = live
        self._bar = bar
        self._tasks = BackgroundTasks()
        self._late: dict[str, asyncio.Task[None]] = {}
        # Legs that were followed as standbys, also those that have ended; none that took over.
        self._ahead: set[str] = set()
        self._heard_at: dict[str, float] = {}
        self._overdue: set[str] = set()
        self._ended_rests = EndedRests(services)
        self._windows = WindowRecorder(services)
        self._counting = BudgetMonitor(
            build_counter(services), services.clock, services.report, services.counting
        )

    def follow(self, live: LegMonitor) -> None:
        """Monitor the leg from now on; of a standby only what it shows, and its end."""
        self._live[live.leg.id] = live
        self._services.last_seen.note(live.leg.id, live.seen)
        self._run(self._supervise(live))
        if self._host.session.is_standby(live.leg.id):
            self._ahead.add(live.leg.id)
        else:
            self._see_to_work(live)

    def _see_to_work(self, live: LegMonitor) -> None:
        self._run(self._count(live))
        self._run(show_slow_start(live, self._host.session, has_bar=self._bar.has_bar))
        self.release(self._host.session)

    def release(self, session: Session) -> None:
        """End the holders kept from earlier legs: their environment was passed on or is not needed."""
        self._run(shutdown.release_legs(self._services, session))

    async def promote(self, leg_id: str) -> bool:
        """Follow a standby that became the session's leg as such, and report its start and its state.

        Returns `False` if it is none, or not yet the leg. One that has just ended is reported already.
        """
        if leg_id not in self._ahead or self._host.session.is_standby(leg_id):
            return False
        live = self._live.get(leg_id)
        if live is not None and not live.gone.is_set():
            self._ahead.discard(leg_id)
            # A terminal that attaches from now on is to see the bar at once.
            await self._bar.show()
            self._see_to_work(live)
            self.note_names(leg_id, live.names)
            self._host.tell(Spawned(leg_id, live.leg.holder_pid, live.leg.child_pid, live.leg.child_born))
            self._host.tell(StateSeen(leg_id, live.state))
        return True

    def adopt_later(self, leg: Leg) -> None:
        """Monitor a standby of before as soon as its holder answers; report its end if it is gone."""
        self._late[leg.id] = self._run(self._adopt_late(leg, frozenset(), lambda _live: None))

    async def adopt(self, leg: Leg, known: KnownSignals, taken: Callable[[LegMonitor], None]) -> bool:
        """Tell whether the leg's holder lives; if so, monitor the leg and call `taken` as soon as it answers.

        What a dead holder left of its agent is ended. A holder whose start was not journalled may be about to
        answer, or to end because whoever started it is gone: it is waited for.
        """
        clock = asyncio.get_running_loop().time
        until = clock() + (0 if leg.child_pid else _STARTING_S)
        while await shutdown.is_held(self._services, leg):
            if await self._try_adopting(leg, known, taken):
                return True
            if clock() >= until:
                self._late[leg.id] = self._run(self._adopt_late(leg, known, taken))
                return True
            await asyncio.sleep(_LOOK_S)
        await self._do_at_last(leg, lambda: shutdown.end_lost_leg(self._services, leg))
        self.trouble = ""
        return False

    async def await_adoption(self, leg_id: str) -> bool:
        """Wait for a late adoption; return `False` if the holder ended instead, which was reported."""
        late = self._late.get(leg_id)
        if late is None:
            return True
        await asyncio.wait({late})
        return leg_id in self._live

    async def end_by_force(self, leg: Leg) -> None:
        """End the agent and its holder; the monitor, if there is one, reports it."""
        live = self._live.get(leg.id)
        await shutdown.end_by_force(
            self._services, leg, live.leg.holder_pid if live is not None else leg.holder_pid
        )

    def is_collecting(self, session: Session) -> bool:
        """Tell whether an agent's end is being read, or what an ended session used is being released."""
        is_over = session.state is State.ENDED and bool(self._tasks)
        return is_over or any(live.gone.is_set() for live in self._live.values())

    async def close(self) -> None:
        """Stop monitoring; legs run on."""
        await self._tasks.close()
        for live in self._live.values():
            await live.close()

    async def _try_adopting(self, leg: Leg, known: KnownSignals, taken: Callable[[LegMonitor], None]) -> bool:
        try:
            live = await adopt_leg(self._services, leg, known, self)
        except (RelayError, OSError) as error:
            self._miss(leg, error)
            return False
        self.trouble = ""
        taken(live)
        if not leg.child_pid:
            # Before anything that can be seen of it: who is told that it is ready is to find it.
            self._host.tell(Spawned(leg.id, live.leg.holder_pid, live.leg.child_pid, live.leg.child_born))
        if live.leg.starting_at < leg.starting_at:
            self._host.tell(ClockSetBack(leg.id, live.leg.starting_at))
        self.follow(live)
        return True

    async def _adopt_late(self, leg: Leg, known: KnownSignals, taken: Callable[[LegMonitor], None]) -> None:
        wait_s = _AGAIN_S
        while await shutdown.is_held(self._services, leg):
            if await self._try_adopting(leg, known, taken):
                return
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _SLOWEST_S)
        await self._do_at_last(leg, lambda: shutdown.end_lost_leg(self._services, leg))
        self.trouble = ""
        self._host.tell(LegGone(leg.id, "lost", why=f"{leg.agent} was lost with its holder"))

    def _miss(self, leg: Leg, error: RelayError | OSError) -> None:
        """Note a holder that does not answer.

        It may be stopped, or wait for its turn on a busy machine: killing its agent would be worse.
        """
        self.trouble = f"the holder of {leg.agent} does not answer; trying again ({error})"
        _log.warning("holder-silent leg=%s why=%s", leg.id, type(error).__name__)

    async def _supervise(self, live: LegMonitor) -> None:
        """Follow the leg's whole life, clean up after it, and report its end."""
        leg = live.leg
        ending = await self._see_out(live)
        await live.end()
        await self._do_at_last(leg, lambda: self._services.evidence.leave(leg.id))
        is_ahead = leg.id in self._ahead
        if not is_ahead:
            await self._do_at_last(leg, lambda: self._name(live))
            ending = await self._do_at_last(leg, lambda: self._judge(live, ending)) or ending
            self._overdue.discard(leg.id)
            await self._do_at_last(leg, lambda: self._keep_last(leg.id, live.launch_environment.environ))
        if ending.how == "exited":
            await self._do_at_last(leg, lambda: shutdown.end_agent(self._services, live.leg))
        else:
            await self._do_at_last(leg, lambda: shutdown.end_lost_leg(self._services, live.leg))
        if is_ahead:
            await self._do_at_last(leg, lambda: shutdown.release_leg(self._services, live.leg))
        self._live.pop(leg.id, None)
        self.trouble = ""
        self._host.tell(ending)
        await live.close()

    async def _judge(self, live: LegMonitor, ending: LegGone) -> LegGone:
        """Return the ending with what the leg's records say of it."""
        leg, turn = live.leg, self._host.session.turn
        folder = f"{self._services.folders.legs}/{leg.id}"
        ending = shutdown.judge_ending(live, ending, folder, is_overdue=leg.id in self._overdue)
        if not leg.headless or turn is None or not turn.seat:
            return ending
        from agent_relay.engine.legs.turn_stream import read_words

        said = await asyncio.to_thread(read_words, self._services, leg)
        return replace(ending, said=said)

    async def _do_at_last(self, leg: Leg, work: Callable[[], Awaitable[_Found]]) -> _Found | None:
        """Return what `work` returns, tried again while the machine lacks something; `None` if it fails.

        Whatever happens here, the leg's end is reported after it: nothing else would say that its agent is
        gone.
        """
        wait_s, left_s = _LOOK_S, _SHORT_S
        while True:
            result = await attempt(work())
            if not isinstance(result, Failed):
                return result
            lacking = find_passing(result.error)
            if not lacking or left_s <= 0:
                self._services.report(result.error)
                return None
            if left_s == _SHORT_S:
                _log.warning("end-waits leg=%s why=%s", leg.id, type(result.error).__name__)
            self.trouble = f"the end of {leg.agent} is not seen to yet: {lacking}"
            await asyncio.sleep(wait_s)
            left_s, wait_s = left_s - wait_s, min(wait_s * 2, _SLOWEST_S)

    def note_change(self, leg_id: str) -> None:
        """Note that the agent said something; after the end of its turn, give it a while to exit.

        A holder that is new may lack the bar.
        """
        live = self._live.get(leg_id)
        if live is not None:
            self._hear_turn(live)
            self._host.note_activity()
            self._bar.update()

    def _hear_turn(self, live: LegMonitor) -> None:
        verdict, leg = live.verdict, live.leg
        if self._windows.note(live):
            self._run(self._windows.write())
        if leg.headless and (verdict.is_done or verdict.has_failed):
            is_seen_off = leg.id in self._heard_at
            self._heard_at[leg.id] = asyncio.get_running_loop().time()
            if not is_seen_off:
                self._run(self._see_off(live))

    async def _see_off(self, live: LegMonitor) -> None:
        """Stop the agent politely if it stays silent after its turn without exiting.

        An agent that waits for something it began must not prolong its turn.
        """
        clock = asyncio.get_running_loop().time
        while not live.gone.is_set() and (left_s := self._heard_at[live.leg.id] + _GRACE_S - clock()) > 0:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await live.gone.wait()
        del self._heard_at[live.leg.id]
        if live.gone.is_set():
            return
        _log.info("overdue leg=%s", live.leg.id)
        if live.verdict.is_done:
            self._overdue.add(live.leg.id)
        # Its supervisor sees to one that survives even that.
        with contextlib.suppress(RelayError):
            await shutdown.stop_leg(live, live.adapter.quit)

    async def _count(self, live: LegMonitor) -> None:
        """Find the agent's own session, and count the user's budgets while the leg lives."""
        await self._counting.follow(live, self._host, partial(self._name, live))

    async def _see_out(self, live: LegMonitor) -> LegGone:
        """Return how the leg ended; ask a holder that does not answer again as long as it lives."""
        wait_s, reports = _AGAIN_S, 0
        while True:
            ending = await attempt(live.run())
            match ending:
                case LegGone():
                    return ending
                case Failed(RelayError() as error):
                    self._miss(live.leg, error)
                case Failed(error):
                    self.trouble = f"agent-relay made a mistake in watching {live.leg.agent}"
                    reports += 1
                    if reports <= _REPORTS:
                        self._services.report(error)
            if not await shutdown.is_held(self._services, live.leg):
                # At once: shells in Unix sessions of their own are found only while their agent lives.
                await self._do_at_last(live.leg, partial(self.end_by_force, live.leg))
                return LegGone(live.leg.id, "lost", why=f"{live.leg.agent} was lost with its holder")
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, _SLOWEST_S)
            with contextlib.suppress(RelayError, OSError):
                await live.reconnect(f"{self._services.folders.legs}/{live.leg.id}")

    def report(self, leg: Leg, happened: Input | Outcome) -> None:
        """Report what happened to the leg, an answer only while the session rests or after a refusal.

        Answers come with every turn, and matter to nothing else. What a standby writes of itself is nobody's.
        """
        session = self._host.session
        if session.is_standby(leg.id) and not isinstance(happened, StateSeen | SignalFound):
            return
        if isinstance(happened, Answered):
            self._run(self._ended_rests.note_answer(leg, happened.at))
            if session.state is not State.RESTING and session.refusal is None:
                return
        self._host.tell(happened)

    def note_names(self, leg_id: str, names: Mapping[str, str]) -> None:
        """Have the name of the agent's own session journalled, and its transcript's."""
        if self._host.session.is_standby(leg_id):
            return
        leg = _get_leg(self._host.session, leg_id)
        native_id = names.get("native_id", leg.native_id)
        known = leg.transcript if native_id == leg.native_id else ""
        transcript = names.get("transcript", known)
        if native_id != leg.native_id:
            self._services.evidence.update(leg_id, native_id=native_id)
        if (native_id, transcript) != (leg.native_id, leg.transcript):
            self._host.tell(Outcome((LegNamed(leg_id, native_id, transcript),)))

    async def _name(self, live: LegMonitor) -> None:
        """Find the agent's own session and transcript, and have them journalled."""
        session, environ = self._host.session, live.launch_environment.environ
        leg = _get_leg(session, live.leg.id)
        loaded = self._services.get_adapter(leg.agent)
        found = await asyncio.to_thread(find_native, loaded, session, leg, environ)
        if found is not None and (leg.native_id, leg.transcript) != (found.native_id, found.path):
            self._host.tell(Outcome((LegNamed(leg.id, found.native_id, found.path),)))

    def _run(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._tasks.begin(work)
        task.add_done_callback(self._let_go)
        return task

    def _let_go(self, _task: asyncio.Task[None]) -> None:
        self._host.note_activity()
        self._bar.update()


def _get_leg(session: Session, leg_id: str) -> Leg:
    return next(leg for leg in session.legs if leg.id == leg_id)
