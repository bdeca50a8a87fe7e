"""Shows a session's status bar on the terminals of the leg at work, and removes it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping

from agent_relay.domain.session import Session
from agent_relay.engine.legs.live_leg import LiveLeg
from agent_relay.engine.services import Services
from agent_relay.session.handoff.status_bar import (
    NO_DELIVERY_PROGRESS,
    DeliveryProgress,
    HandoffBar,
    build_bar,
    build_question_bar,
)
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)
_AGAIN_S = 0.5
"""Pause before a holder that did not take the bar gets it again: an old bar would hold a person's keys."""
_SHOWN_S = 1.0
"""How long a caller that needs the bar on the screen waits for a holder that does not answer."""
_PASSING = frozenset({"gone", "slow", ""})
"""Reasons for which a holder that supports bars may not have taken one."""


class BarSender:
    """The bar of one session. Its followers are notified of changes that no line of the journal shows."""

    def __init__(
        self, services: Services, live: Mapping[str, LiveLeg], get_session: Callable[[], Session]
    ) -> None:
        self._services = services
        self._live = live
        self._get_session = get_session
        self._delivery = NO_DELIVERY_PROGRESS
        self._shown: dict[str, HandoffBar] = {}
        self._unable: set[str] = set()
        # Legs whose holders, of an earlier version, go on typing what they hold into a question.
        self._types_on: set[str] = set()
        self._sending: asyncio.Task[None] | None = None

    @property
    def bar(self) -> HandoffBar:
        """The bar as it should be now."""
        return build_bar(self._get_session(), self._delivery, self._services.zone)

    def update(self) -> None:
        """Schedule sending the current bar to the leg's terminals."""
        if (self._sending is None or self._sending.done()) and self._find_due() is not None:
            self._sending = asyncio.create_task(self._send(), name="bar")

    def can_show(self, leg_id: str) -> bool:
        """Tell whether the leg's holder shows bars, as far as that is known."""
        return leg_id in self._shown and leg_id not in self._unable

    async def show(self, delivery: DeliveryProgress | None = None) -> bool:
        """Show the bar as it is now; return whether the leg's terminals show it and their keys are held.

        `delivery` is what a delivery does from now on. A holder that does not answer is waited for 1 s.
        """
        if delivery is not None and delivery != self._delivery:
            self._delivery = delivery
            self._services.teller.tell(self._get_session().id)
        self.update()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_SHOWN_S):
                while self._sending is not None and not self._sending.done():
                    await asyncio.shield(self._sending)
        leg = self._get_session().living_leg
        return leg is not None and self.can_show(leg.id) and self._shown[leg.id].holds_keys

    async def close(self) -> None:
        """Stop sending; holders keep showing what they got last."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    async def _send(self) -> None:
        """Send the bar to the leg at work, and what changes meanwhile after it."""
        try:
            while (due := self._find_due()) is not None:
                leg, bar = due
                if not await self._try_sending(leg, bar):
                    await asyncio.sleep(_AGAIN_S)
        except Exception as error:  # noqa: BLE001 - the root of the task: a bar must not cost the handoff
            self._services.report(error)

    def _find_due(self) -> tuple[LiveLeg, HandoffBar] | None:
        leg = self._get_session().living_leg
        live = self._live.get(leg.id) if leg is not None else None
        if live is None or live.leg.headless or live.watch.gone.is_set():
            return None
        bar = self.bar
        if not bar.texts and live.leg.id not in self._types_on:
            bar = build_question_bar(self._get_session())
        return None if self._shown.get(live.leg.id) == bar else (live, bar)

    async def _try_sending(self, live: LiveLeg, bar: HandoffBar) -> bool:
        holder, texts = live.watch.holder, list(bar.texts)
        try:
            if bar.only_held:
                await holder.request("asking", texts=texts)
            else:
                await holder.request("bar", texts=texts, holds_keys=bar.holds_keys)
        except HolderError as error:
            _log.info("bar-not-shown leg=%s why=%s", live.leg.id, error.why)
            if error.why in _PASSING:
                return False
            if bar.only_held:
                self._types_on.add(live.leg.id)
                return True
            # A holder of an earlier version: its terminals are told by lines, and keys cannot wait there.
            self._unable.add(live.leg.id)
        self._shown = {live.leg.id: bar}
        return True
