"""Gives a session's living legs what they are to work on, a packet or the task, once each."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import Delivered, DeliverFailed, Input, TaskGiven
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.delivery.text_delivery import TurnInput, deliver_text, forget_text
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import BarSender
from agent_relay.engine.services import Services
from agent_relay.session.handoff.status_bar import DeliveryProgress, DeliveryStage
from agent_relay.system.failures import find_passing
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)


class SessionDeliveries:
    """The deliveries of one session, at most one at a time for each leg.

    An agent that asked something during a delivery becomes ready a second time, which must not start another.
    """

    def __init__(self, services: Services, live: Mapping[str, LegMonitor], bar: BarSender) -> None:
        self._services = services
        self._live = live
        self._bar = bar
        self._under_way: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """What a delivery under way waits for; empty for nothing."""
        return next((why for why in self._under_way.values() if why), "")

    async def deliver_packet(self, session: Session, handoff: Handoff, leg_id: str) -> Input | None:
        """Give the leg its packet and return the result; `None` if it is being given something already."""
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return None
        deliver = live.adapter.deliver
        self._under_way[leg_id] = ""
        try:
            packet = ""
            if deliver.packet_by == "paste":
                from agent_relay.engine.publishing.publish import read_packet_text

                packet = await asyncio.to_thread(read_packet_text, self._services, session, handoff)
            text = TurnInput(handoff.id, packet, deliver.opening)
            progress = _Progress(self._bar, live, partial(self._tell, live))
            await deliver_text(live, deliver, text, tell=progress.tell, announce=progress.announce)
        except RelayError as error:
            with contextlib.suppress(HolderError):
                await forget_text(live)
            if find_passing(error):
                raise
            return DeliverFailed(handoff.id, leg_id, error.sentence)
        finally:
            self._under_way.pop(leg_id, None)
        return Delivered(handoff.id, leg_id)

    async def deliver_task(self, task: str, leg_id: str) -> Input | None:
        """Give the leg the task; return `TaskGiven`, or `None` if it is being given something already.

        Raises RelayError if the task cannot be delivered.
        """
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return None
        self._under_way[leg_id] = ""
        try:
            # The holder of an earlier version knows of nothing: a leg that worked was given it then.
            if not live.leg.was_busy or await live.holder.read_note() is not None:
                tell = partial(self._tell, live)
                await deliver_text(live, live.adapter.deliver, TurnInput("task", "", task), tell=tell)
        finally:
            self._under_way.pop(leg_id, None)
        return TaskGiven(leg_id)

    async def _tell(self, live: LegMonitor, why: str, *, is_shown: bool = False) -> None:
        """Set `trouble` to what delays the delivery, and show it as a line on every terminal of the leg.

        With `is_shown` the terminals show it already.
        """
        self._under_way[live.leg.id] = why
        _log.info("delivery-waits leg=%s state=%s input=%s", live.leg.id, live.state, live.input)
        if is_shown:
            return
        with contextlib.suppress(HolderError):
            await live.holder.request("say", text=f"→ {why}")


class _Progress:
    """How far one packet has come, as the bar of its leg shows it."""

    def __init__(self, bar: BarSender, live: LegMonitor, tell: Callable[..., Awaitable[None]]) -> None:
        self._bar = bar
        self._leg = live.leg.id
        self._tell = tell
        self._stage = DeliveryStage.NONE

    async def announce(self, stage: DeliveryStage) -> bool:
        """Show the stage in the bar; return whether the keys of the leg's terminals are held now."""
        self._stage = stage
        return await self._bar.show(DeliveryProgress(self._leg, stage))

    async def tell(self, why: str) -> None:
        """Show people what delays the packet."""
        await self._bar.show(DeliveryProgress(self._leg, self._stage, why))
        await self._tell(why, is_shown=self._bar.can_show(self._leg))
