"""Giving a living leg what it is to work on: its packet or the session's task, once."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from agent_relay.app.bar_sender import BarSender
from agent_relay.app.delivery import Text, deliver_text, forget_text
from agent_relay.app.ground import Ground
from agent_relay.app.legs import LiveLeg
from agent_relay.domain.effect import Delivered, DeliverFailed, Happened, TaskGiven
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Handoff, Session
from agent_relay.logic.bar import Delivery, DeliveryStage
from agent_relay.system.holder_client import HolderError
from agent_relay.system.shortages import find_passing

_log = logging.getLogger(__name__)


class Handing:
    """The deliveries of one session. An agent that asked something meanwhile is ready a second time."""

    def __init__(self, ground: Ground, live: Mapping[str, LiveLeg], bar: BarSender) -> None:
        self._ground = ground
        self._live = live
        self._bar = bar
        self._under_way: dict[str, str] = {}

    @property
    def trouble(self) -> str:
        """What a delivery under way waits for; empty for nothing."""
        return next((why for why in self._under_way.values() if why), "")

    async def deliver_packet(self, session: Session, handoff: Handoff, leg_id: str) -> Happened | None:
        """What came of giving the leg its packet; `None` where it is being given something already."""
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return None
        deliver = live.adapter.deliver
        self._under_way[leg_id] = ""
        try:
            packet = ""
            if deliver.packet_by == "paste":
                from agent_relay.app.publishing import read_packet_text

                packet = await asyncio.to_thread(read_packet_text, self._ground, session, handoff)
            text = Text(handoff.id, packet, deliver.opening)
            progress = _Progress(self._bar, live, partial(self._tell, live))
            await deliver_text(live.watch, deliver, text, tell=progress.tell, announce=progress.announce)
        except RelayError as error:
            with contextlib.suppress(HolderError):
                await forget_text(live.watch)
            if find_passing(error):
                raise
            return DeliverFailed(handoff.id, leg_id, error.sentence)
        finally:
            self._under_way.pop(leg_id, None)
        return Delivered(handoff.id, leg_id)

    async def deliver_task(self, task: str, leg_id: str) -> Happened | None:
        """That the leg works on the task; `None` where it is being given something. Raises RelayError."""
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return None
        self._under_way[leg_id] = ""
        try:
            # The holder of an earlier version knows of nothing: a leg that worked was given it then.
            if not live.leg.was_busy or await live.watch.holder.read_note() is not None:
                tell = partial(self._tell, live)
                await deliver_text(live.watch, live.adapter.deliver, Text("task", "", task), tell=tell)
        finally:
            self._under_way.pop(leg_id, None)
        return TaskGiven(leg_id)

    async def _tell(self, live: LiveLeg, why: str, *, is_shown: bool = False) -> None:
        """What keeps the delivery waiting is what `trouble` says, and a line on every terminal of the leg.

        With `is_shown` they have read it already.
        """
        self._under_way[live.leg.id] = why
        _log.info("delivery-waits leg=%s state=%s input=%s", live.leg.id, live.watch.state, live.watch.input)
        if is_shown:
            return
        with contextlib.suppress(HolderError):
            await live.watch.holder.request("say", text=f"→ {why}")


class _Progress:
    """How far one packet has come, as the bar of its leg says it."""

    def __init__(self, bar: BarSender, live: LiveLeg, tell: Callable[..., Awaitable[None]]) -> None:
        self._bar = bar
        self._leg = live.leg.id
        self._tell = tell
        self._stage = DeliveryStage.NONE

    async def announce(self, stage: DeliveryStage) -> bool:
        """Whether the keys of the leg's terminals wait now."""
        self._stage = stage
        return await self._bar.show(Delivery(self._leg, stage))

    async def tell(self, why: str) -> None:
        """People read what keeps the packet waiting."""
        await self._bar.show(Delivery(self._leg, self._stage, why))
        await self._tell(why, is_shown=self._bar.can_show(self._leg))
