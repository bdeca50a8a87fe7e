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
from agent_relay.domain.spending import Mark, Spending
from agent_relay.domain.spending_effect import Counted
from agent_relay.logic.spending import find_spending
from agent_relay.system.local_zone import LocalZone
from agent_relay.system.spending import Counter

_log = logging.getLogger(__name__)
_PAUSE_S = 5.0
"""How long an agent works between two counts."""
_SHARE = 20
"""A count that takes long is made seldom: no more than one part in so many of the time."""
_SETTLE_S = 0.5
"""How long after a turn its last record may be written."""
_IDLE_S = 86_400.0


class Counting:
    """The budgets of one daemon's user, counted for the legs of one session."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
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
        """Every mark passed while the leg lives is told; the first count tells whatever is not open.

        An agent that does not say which of its sessions it works in has its leg named by `name` once it has
        worked: what it uses could not be told from others' before.
        """
        is_first = True
        while not live.watch.gone.is_set():
            if not _is_named(get_session(), live.leg.id):
                if live.watch.heard:
                    await name()
                    await asyncio.sleep(_SETTLE_S)
            elif self._counter is None:
                return
            began = time.monotonic()
            if self._counter is not None:
                found = await self._count(self._counter, live, get_session())
                if is_first or _has_news(get_session(), found):
                    tell(Counted(live.leg.id, tuple(one for one in found if one.mark is not Mark.OPEN)))
                is_first = False
            pause_s = max(_PAUSE_S, _SHARE * (time.monotonic() - began))
            await _pause(live.watch, pause_s, is_headless=live.leg.headless)

    async def _count(self, counter: Counter, live: LiveLeg, session: Session) -> Sequence[Spending]:
        ground = self._ground
        environ, now = live.luggage.environ, ground.clock.now()
        try:
            return await asyncio.to_thread(counter.count, session, now=now, zone=LocalZone(), environ=environ)
        except RelayError as error:
            _log.warning("budgets-uncounted session=%s why=%s", session.id, type(error).__name__)
            return ()


def _is_named(session: Session, leg_id: str) -> bool:
    """Whether the agent's own session of the leg is known."""
    return any(leg.id == leg_id and leg.native_id for leg in session.legs)


def _has_news(session: Session, found: Sequence[Spending]) -> bool:
    for one in found:
        known = find_spending(session, one.budget)
        before = known.mark if known is not None and known.period == one.period else Mark.OPEN
        if one.mark.is_above(before):
            return True
    return False


async def _pause(watch: LegWatch, pause_s: float, *, is_headless: bool) -> None:
    """Something may have been used: the agent has told of something, and worked for a while or is done."""
    heard = watch.heard
    if not is_headless:
        await watch.wait_until(
            lambda: watch.gone.is_set() or watch.state == "busy" or watch.heard != heard, limit_s=_IDLE_S
        )
        await asyncio.sleep(_SETTLE_S)
    is_over = watch.gone.is_set
    await watch.wait_until(lambda: is_over() or (not is_headless and watch.state != "busy"), limit_s=pause_s)
    if not is_over():
        await asyncio.sleep(_SETTLE_S)
