"""Counts the use of the user's budgets while a leg lives, and reports when it passes a mark."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import Protocol

from agent_relay.domain.budgets import Spending
from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import BudgetsCounted, Input
from agent_relay.domain.session import Session
from agent_relay.engine.legs.live_leg import LiveLeg
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import Services
from agent_relay.engine.threads import ThreadPerHome
from agent_relay.session.warnings import find_spending, is_budget_news
from agent_relay.system.clock import Clock, LocalZone
from agent_relay.usage.budget_usage import BudgetCounter, ErrorDeduplicator

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
"""How long an agent works between two counts."""
_SHARE = 20
"""A count that takes long is made seldom: no more than one part in so many of the time."""
_SETTLE_S = 0.5
"""How long after a turn its last record may be written."""
_IDLE_S = 86_400.0
_OUR_MISTAKE = "agent-relay made a mistake in counting; a crash report was written"


class BudgetSource(Protocol):
    """Who counts: from the files of this machine."""

    def count(
        self, session: Session, *, now: datetime, zone: tzinfo, environ: Mapping[str, str]
    ) -> Sequence[Spending]:
        """How every budget stands. Raises RelayError where nothing tells."""
        ...

    def tell_uncounted(self, why: str, *, now: datetime, zone: tzinfo) -> Sequence[Spending]:
        """That none of them is counted, and `why`."""
        ...


def build_counter(ground: Services) -> BudgetCounter | None:
    """Counts for the user's budgets; `None` where there are none."""
    budgets = ground.config.build_budgets()
    specs = {
        str(name): loaded.adapter.transcript
        for name, loaded in ground.adapters.items()
        if loaded.adapter.transcript is not None
    }
    return BudgetCounter(budgets, specs, ground.folders.usage_index) if budgets else None


class BudgetMonitor:
    """The budgets of one daemon's user, counted for the legs of one session.

    `threads` are those that all sessions count in.
    """

    def __init__(
        self,
        counter: BudgetSource | None,
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

    async def follow(
        self,
        live: LiveLeg,
        get_session: Callable[[], Session],
        tell: Callable[[Input], None],
        name: Callable[[], Awaitable[None]],
    ) -> None:
        """Every mark passed while the leg lives is told; the first count tells how all of them stand.

        An agent that does not say which of its sessions it works in has its leg named by `name` once it has
        worked: what it uses could not be told from others' before. What cannot be done in one round is tried
        again in the next one.
        """
        is_first = True

        def say(found: Sequence[Spending]) -> None:
            nonlocal is_first
            if is_first or _has_news(get_session(), found):
                tell(BudgetsCounted(live.leg.id, tuple(found)))
            is_first = False

        while not live.watch.gone.is_set():
            if not _is_named(get_session(), live.leg.id):
                if live.watch.heard:
                    await self._attempt("name", live, name)
                    await asyncio.sleep(self._settle_s)
            elif self._counter is None:
                return
            began, heard = time.monotonic(), live.watch.heard
            if self._counter is not None:
                await self._count(self._counter, live, get_session, say)
            pause_s = max(_PAUSE_S, _SHARE * (time.monotonic() - began))
            await self._pause(live.watch, pause_s, heard, is_headless=live.leg.headless)

    async def _count(
        self,
        counter: BudgetSource,
        live: LiveLeg,
        get_session: Callable[[], Session],
        say: Callable[[Sequence[Spending]], None],
    ) -> None:
        """How the budgets stand is said; where that cannot be counted, it is what is said of them."""
        now, zone = self._clock.now(), LocalZone()

        async def count() -> None:
            environ = live.luggage.environ
            thread = self._threads.find(environ)
            say(await thread.run(counter.count, get_session(), now=now, zone=zone, environ=environ))

        async def tell_uncounted() -> None:
            say(counter.tell_uncounted(why, now=now, zone=zone))

        why = await self._attempt("count", live, count)
        if why:
            await self._attempt("tell-uncounted", live, tell_uncounted)

    async def _attempt(self, step: str, live: LiveLeg, work: Callable[[], Awaitable[None]]) -> str:
        """Why a step of a round could not be done; empty where it was."""
        try:
            await work()
        except RelayError as error:
            _log.warning("not-counted leg=%s step=%s why=%s", live.leg.id, step, type(error).__name__)
            return error.sentence
        except Exception as error:  # noqa: BLE001 - the root of a round's step: a mistake must not end the watch over every budget
            self._mistakes.note(error)
            return _OUR_MISTAKE
        return ""

    async def _pause(self, watch: LegMonitor, pause_s: float, heard: int, *, is_headless: bool) -> None:
        """Something may have been used: the agent told of more than `heard`, and worked a while or is done.

        A turn may begin and end while a count is under way.
        """
        if not is_headless:
            await watch.wait_until(
                lambda: watch.gone.is_set() or watch.state == "busy" or watch.heard != heard, limit_s=_IDLE_S
            )
            await asyncio.sleep(self._settle_s)
        is_over = watch.gone.is_set
        await watch.wait_until(
            lambda: is_over() or (not is_headless and watch.state != "busy"), limit_s=pause_s
        )
        if not is_over():
            await asyncio.sleep(self._settle_s)


def _is_named(session: Session, leg_id: str) -> bool:
    """Whether the agent's own session of the leg is known."""
    return any(leg.id == leg_id and leg.native_id for leg in session.legs)


def _has_news(session: Session, found: Sequence[Spending]) -> bool:
    return any(is_budget_news(find_spending(session, one.budget), one) for one in found)
