"""Counts while a leg lives what is used of the user's budgets, and tells when that passes a mark."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence

from agent_relay.app.ground import Ground
from agent_relay.app.legs import LiveLeg
from agent_relay.app.watch import LegWatch
from agent_relay.domain.effect import Happened
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.spending import Spending
from agent_relay.domain.spending_effect import Counted
from agent_relay.logic.spending import find_spending, is_news
from agent_relay.system.local_zone import LocalZone
from agent_relay.system.spending import Counter

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
"""How long an agent works between two counts."""
_SHARE = 20
"""A count that takes long is made seldom: no more than one part in so many of the time."""
_SETTLE_S = 0.5
"""How long after a turn its last record may be written."""
_REPORTS = 3
"""A mistake of ours that comes back with every count is reported this often."""
_IDLE_S = 86_400.0


class Counting:
    """The budgets of one daemon's user, counted for the legs of one session."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._reports = 0
        budgets = ground.config.build_budgets()
        specs = {
            str(name): loaded.adapter.transcript
            for name, loaded in ground.adapters.items()
            if loaded.adapter.transcript is not None
        }
        self._counter = Counter(budgets, specs, ground.folders.usage_index) if budgets else None

    async def follow(
        self,
        live: LiveLeg,
        get_session: Callable[[], Session],
        tell: Callable[[Happened], None],
        name: Callable[[], Awaitable[None]],
    ) -> None:
        """Every mark passed while the leg lives is told; the first count tells how all of them stand.

        An agent that does not say which of its sessions it works in has its leg named by `name` once it has
        worked: what it uses could not be told from others' before.
        """
        is_first = True
        while not live.watch.gone.is_set():
            if not _is_named(get_session(), live.leg.id):
                if live.watch.heard:
                    await self._try(name)
                    await asyncio.sleep(_SETTLE_S)
            elif self._counter is None:
                return
            began, heard = time.monotonic(), live.watch.heard
            if self._counter is not None:
                found = await self._count(self._counter, live, get_session())
                if is_first or _has_news(get_session(), found):
                    tell(Counted(live.leg.id, tuple(found)))
                is_first = False
            pause_s = max(_PAUSE_S, _SHARE * (time.monotonic() - began))
            await _pause(live.watch, pause_s, heard, is_headless=live.leg.headless)

    async def _count(self, counter: Counter, live: LiveLeg, session: Session) -> Sequence[Spending]:
        """How the budgets stand; where that cannot be counted, it is what is said of them."""
        ground = self._ground
        environ, now, zone = live.luggage.environ, ground.clock.now(), LocalZone()
        try:
            return await asyncio.to_thread(counter.count, session, now=now, zone=zone, environ=environ)
        except RelayError as error:
            _log.warning("budgets-uncounted session=%s why=%s", session.id, type(error).__name__)
            why = error.sentence
        except Exception as error:  # noqa: BLE001 - the root of a count: the next one is made all the same
            self._report(error)
            why = "agent-relay made a mistake in counting"
        return counter.tell_uncounted(why, now=now, zone=zone)

    async def _try(self, name: Callable[[], Awaitable[None]]) -> None:
        """The leg is named, if it can be: a budget of a day is counted without that."""
        try:
            await name()
        except Exception as error:  # noqa: BLE001 - whatever an agent's records hold, its budgets are counted
            self._report(error)

    def _report(self, error: Exception) -> None:
        self._reports += 1
        if self._reports <= _REPORTS:
            self._ground.report(error)


def _is_named(session: Session, leg_id: str) -> bool:
    """Whether the agent's own session of the leg is known."""
    return any(leg.id == leg_id and leg.native_id for leg in session.legs)


def _has_news(session: Session, found: Sequence[Spending]) -> bool:
    return any(is_news(find_spending(session, one.budget), one) for one in found)


async def _pause(watch: LegWatch, pause_s: float, heard: int, *, is_headless: bool) -> None:
    """Something may have been used: the agent told of more than `heard`, and worked for a while or is done.

    A turn may begin and end while a count is under way.
    """
    if not is_headless:
        await watch.wait_until(
            lambda: watch.gone.is_set() or watch.state == "busy" or watch.heard != heard, limit_s=_IDLE_S
        )
        await asyncio.sleep(_SETTLE_S)
    is_over = watch.gone.is_set
    await watch.wait_until(lambda: is_over() or (not is_headless and watch.state != "busy"), limit_s=pause_s)
    if not is_over():
        await asyncio.sleep(_SETTLE_S)
