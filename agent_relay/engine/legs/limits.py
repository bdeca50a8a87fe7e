"""Relate legs to limits: budgets, rests and usage windows of living ones, standbys started ahead of one."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from datetime import datetime
from functools import reduce

import msgspec

from agent_relay.detect.window_usage import list_rows
from agent_relay.domain.effects import NoteRest
from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import BudgetsCounted
from agent_relay.domain.limits import Spending
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import AgentName, replace
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import LaunchEnvironment, Services, SessionHost
from agent_relay.engine.threads import Failed, ThreadPerHome, attempt
from agent_relay.session.decision import DecisionContext
from agent_relay.session.rests import include_rest
from agent_relay.session.transitions import find_spending, is_budget_news
from agent_relay.store.usage_windows import update_windows
from agent_relay.system.clock import Clock, LocalZone
from agent_relay.terminal.holder_client import HolderError
from agent_relay.usage.budget_usage import BudgetCounter, ErrorDeduplicator

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
"""Pause between two counts while an agent works, in seconds."""
_SHARE = 20
"""Counting takes at most one part in this many of the time: a slow count is made less often."""
_SETTLE_S = 0.5
"""Longest time from a turn's end until its last record is written, in seconds."""
_IDLE_S = 86_400.0
_OUR_MISTAKE = "agent-relay made a mistake in counting; a crash report was written"


def build_counter(services: Services) -> BudgetCounter | None:
    """Return the counter for the user's budgets; `None` if there are none."""
    budgets = services.config.build_budgets()
    specs = {
        str(name): loaded.adapter.transcript
        for name, loaded in services.adapters.items()
        if loaded.adapter.transcript is not None
    }
    return BudgetCounter(budgets, specs, services.folders.usage_index) if budgets else None


class BudgetMonitor:
    """Counts the budgets of one daemon's user for the legs of one session.

    `threads` are those that all sessions count in.
    """

    def __init__(
        self,
        counter: BudgetCounter | None,
        clock: Clock,
        report: Callable[[BaseException], None],
        threads: ThreadPerHome,
        *,
        settle_s: float = _SETTLE_S,
    ) -> None:
        self._counter = counter
        self._clock = clock
        self._threads = threads
        self._settle_s = settle_s
        self._mistakes = ErrorDeduplicator(report)

    async def follow(self, live: LegMonitor, host: SessionHost, name: Callable[[], Awaitable[None]]) -> None:
        """Report every mark passed while the leg lives; the first count reports the state of all budgets.

        If an agent does not say which of its sessions it works in, `name` finds that out for its leg once it
        has worked: before, its usage could not be separated from others'. What fails in one round is tried
        again in the next one.
        """
        is_first = True

        def say(found: Sequence[Spending]) -> None:
            nonlocal is_first
            if is_first or _has_news(host.session, found):
                host.tell(BudgetsCounted(live.leg.id, tuple(found)))
            is_first = False

        while not live.gone.is_set():
            if not _is_named(host.session, live.leg.id):
                if live.heard:
                    await self._attempt("name", live, name)
                    await asyncio.sleep(self._settle_s)
            elif self._counter is None:
                return
            began, heard = time.monotonic(), live.heard
            if self._counter is not None:
                await self._count(self._counter, live, host, say)
            pause_s = max(_PAUSE_S, _SHARE * (time.monotonic() - began))
            await self._pause(live, pause_s, heard, is_headless=live.leg.headless)

    async def _count(
        self,
        counter: BudgetCounter,
        live: LegMonitor,
        host: SessionHost,
        say: Callable[[Sequence[Spending]], None],
    ) -> None:
        """Count the budgets and report them; if they cannot be counted, report that."""
        now, zone = self._clock.now(), LocalZone()

        async def count() -> None:
            environ = live.launch_environment.environ
            thread = self._threads.find(environ)
            say(await thread.run(counter.count, host.session, now=now, zone=zone, environ=environ))

        async def tell_uncounted() -> None:
            say(counter.tell_uncounted(why, now=now, zone=zone))

        why = await self._attempt("count", live, count)
        if why:
            await self._attempt("tell-uncounted", live, tell_uncounted)

    async def _attempt(self, step: str, live: LegMonitor, work: Callable[[], Awaitable[None]]) -> str:
        """Do one step of a round; return why it failed, empty if it did not."""
        result = await attempt(work())
        if not isinstance(result, Failed):
            return ""
        if isinstance(result.error, RelayError):
            why = type(result.error).__name__
            _log.warning("not-counted leg=%s step=%s why=%s", live.leg.id, step, why)
            return result.error.sentence
        self._mistakes.note(result.error)
        return _OUR_MISTAKE

    async def _pause(self, monitor: LegMonitor, pause_s: float, heard: int, *, is_headless: bool) -> None:
        """Wait until the agent may have used something, at most `pause_s` while it works.

        With a screen, wait first until it is busy, has ended, or has written records beyond `heard`. Then
        wait until it stops working, for a headless leg until it ends. A turn may begin and end while a count
        is under way.
        """
        if not is_headless:
            await monitor.wait_until(
                lambda: monitor.gone.is_set() or monitor.state == "busy" or monitor.heard != heard,
                limit_s=_IDLE_S,
            )
            await asyncio.sleep(self._settle_s)
        is_over = monitor.gone.is_set
        await monitor.wait_until(
            lambda: is_over() or (not is_headless and monitor.state != "busy"), limit_s=pause_s
        )
        if not is_over():
            await asyncio.sleep(self._settle_s)


def _is_named(session: Session, leg_id: str) -> bool:
    """Tell whether the agent's own session of the leg is known."""
    return any(leg.id == leg_id and leg.native_id for leg in session.legs)


def _has_news(session: Session, found: Sequence[Spending]) -> bool:
    return any(is_budget_news(find_spending(session, one.budget), one) for one in found)


_MOST_OFTEN_S = 5.0
"""Shortest time between two readings of the ledger, in seconds; answers come with every step of a turn."""
_WAITS_S = (0, 2, 5, 10, 15, 30)
"""Waits before each try: a disk that refuses is tried again for a minute."""


class RestWriter:
    """Writes into the ledger that an agent rests. Use it from the event loop only.

    While the ledger cannot be written, `troubles` says why under "ledger".
    """

    def __init__(self, services: Services, troubles: MutableMapping[str, str]) -> None:
        self._services = services
        self._troubles = troubles
        self._unwritten: list[NoteRest] = []

    async def write(self, note: NoteRest) -> None:
        """Write the rest; if the disk refuses, try again for a minute."""
        self._unwritten.append(note)
        try:
            await self._try(note)
        finally:
            self._unwritten.remove(note)

    def include(self, context: DecisionContext) -> DecisionContext:
        """Return `context` with the rests that are not written yet, so that no resting agent is offered."""
        return reduce(include_rest, self._unwritten, context)

    async def _try(self, note: NoteRest) -> None:
        for wait_s in _WAITS_S:
            await asyncio.sleep(wait_s)
            try:
                await asyncio.to_thread(self._services.note_rest, note)
            except (RelayError, OSError) as error:
                self._troubles["ledger"] = error.sentence if isinstance(error, RelayError) else str(error)
            else:
                self._troubles.pop("ledger", None)
                return


_WRITE_S = 5.0
"""Shortest time between two writes of what agents said last, in seconds; readings come with every answer."""


class WindowRecorder:
    """Writes what a session's agents say of their usage windows into the file that commands read.

    Use it from the event loop only.
    """

    def __init__(self, services: Services) -> None:
        self._services = services
        self._is_due = False

    def note(self, live: LegMonitor) -> bool:
        """Note what the leg last read; return whether `write` is to be called."""
        now = self._services.clock.now()
        is_news = self._services.windows.note(live.leg.agent, live.windows, now)
        begins = is_news and not self._is_due
        self._is_due = self._is_due or is_news
        return begins

    async def write(self) -> None:
        """Write what is known, once the newest readings are likely to be in."""
        await asyncio.sleep(_WRITE_S)
        self._is_due = False
        now, path = self._services.clock.now(), self._services.folders.usage_windows
        rows = list_rows(self._services.windows.list_known(now))
        try:
            await asyncio.to_thread(update_windows, path, rows, now)
        except RelayError as error:
            _log.warning("windows-not-written why=%s", type(error).__name__)


class EndedRests:
    """The rests that one session's agents end by answering. Use it from the event loop only."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._next_s = 0.0

    async def note_answer(self, leg: Leg, at: datetime | None) -> None:
        """Note that the leg's agent answered at that moment; `None` is now."""
        now_s = self._services.clock.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + _MOST_OFTEN_S
        try:
            await asyncio.to_thread(
                self._services.end_rests, leg.agent, leg.model, at or self._services.clock.now()
            )
        except RelayError as error:
            _log.warning("rest-not-ended agent=%s why=%s", leg.agent, type(error).__name__)


_MOST_STANDBYS = 2
"""Most sessions of one user with a standby at once: each takes the memory of an agent at work."""


class StandbySetups:
    """Rules for one session's standby; `live` are the monitors of the session's living legs."""

    def __init__(self, services: Services, live: Mapping[str, LegMonitor]) -> None:
        self._services = services
        self._live = live
        self._adapters: dict[str, bytes] = {}

    def list_setups(self, session: Session, launch: LaunchEnvironment) -> dict[str, str]:
        """Return, by agent, what identifies the configuration it would be started with; empty for nobody.

        Only agents are meant that are given their packet once they are ready. With another environment than
        the standby's a successor is started anew.
        """
        ahead = session.standby
        if not self._services.config.handoff.standby:
            return {}
        if ahead is None and len(self._services.standbys) >= _MOST_STANDBYS:
            return {}
        live = self._live.get(ahead.leg.id) if ahead is not None else None
        if live is not None and _describe(live.launch_environment) != _describe(launch):
            return {}
        adapters = self._services.adapters
        return {
            name: self._identify(name, launch)
            for name in session.roster
            if AgentName(name) in adapters and adapters[AgentName(name)].adapter.deliver.packet_by == "paste"
        }

    def see(self, session: Session) -> None:
        """Count the session's standby among its user's."""
        if session.standby is None:
            self._services.standbys.pop(session.id, None)
        else:
            self._services.standbys[session.id] = session.standby.leg.id

    async def prepare(self, session: Session, launch: LaunchEnvironment) -> LaunchEnvironment:
        """Return the launch environment of the standby, with the size of the screen that the user sees now.

        Raises RelayError if sessions with earlier standbys are as many as there may be.
        """
        if session.id not in [*self._services.standbys][:_MOST_STANDBYS]:
            raise RelayError(f"{_MOST_STANDBYS} other sessions have an agent ready already")
        leg = session.living_leg
        live = self._live.get(leg.id) if leg is not None else None
        if live is None:
            return launch
        try:
            status = await live.holder.request("status")
        except HolderError:
            return launch
        rows, cols = status.get("rows"), status.get("cols")
        if not isinstance(rows, int) or not isinstance(cols, int):
            return launch
        return replace(launch, rows=rows, cols=cols)

    def _identify(self, name: str, launch: LaunchEnvironment) -> str:
        config = self._services.config
        if name not in self._adapters:
            adapter = self._services.get_adapter(name).adapter
            self._adapters[name] = msgspec.json.encode(adapter)
        words = (
            config.get_agent(name),
            (launch.args, launch.model) if launch.agent == name else (),
            config.agent_tools,
            config.proxy,
            config.may_ever_continue,
        )
        return hashlib.sha256(self._adapters[name] + msgspec.json.encode(words)).hexdigest()[:16]


def _describe(launch: LaunchEnvironment) -> tuple[object, ...]:
    return (launch.environ, launch.agent, launch.args, launch.model)
