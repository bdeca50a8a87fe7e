"""Where one session's effects are performed: legs started and stopped, packets published and delivered."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING

from agent_relay.app.delivery import deliver_text
from agent_relay.app.ground import Ground
from agent_relay.app.legs import Known, LiveLeg, Luggage, adopt_leg, end_lost_leg, start_leg
from agent_relay.app.publishing import find_native, publish, read_packet_text
from agent_relay.app.stopping import stop_leg
from agent_relay.domain.effect import (
    Delivered,
    DeliverFailed,
    DeliverPacket,
    DeliverTask,
    Effect,
    Happened,
    LegGone,
    NoteRest,
    PublishFailed,
    PublishPacket,
    ResetPassed,
    Spawned,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.errors import RelayError
from agent_relay.domain.event import Event, LegNamed, SignalSeen
from agent_relay.domain.session import Handoff, Leg, Session
from agent_relay.logic.outcome import World

if TYPE_CHECKING:
    from agent_relay.app.host import Host

_log = logging.getLogger(__name__)


class Stage:
    """Performs one session's effects. `luggage` is what the user's last terminal brought."""

    def __init__(self, ground: Ground) -> None:
        self.trouble = ""
        self._ground = ground
        self._host: Host | None = None
        self._live: dict[str, LiveLeg] = {}
        self._luggage = Luggage(dict(os.environ))
        self._task = ""
        self._starting = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def host(self) -> "Host":
        """The host whose effects these are."""
        if self._host is None:
            raise AssertionError("a stage is used before its host is known")
        return self._host

    @host.setter
    def host(self, host: "Host") -> None:
        self._host = host

    def take(self, luggage: Luggage, task: str = "") -> None:
        """Legs started from now on get this environment, size, arguments and model.

        `task` is in the user's words; the journal knows it without secrets.
        """
        self._luggage = luggage
        self._task = task

    async def build_world(self, session: Session) -> World:
        """What the machine may know now."""
        ground = self._ground
        availability = await asyncio.to_thread(ground.read_availability, self._luggage.environ)
        return World(
            ground.clock.now(),
            {
                name: state
                for name, state in availability.items()
                if name in {*session.roster, *ground.adapters}
            },
            ground.create_id(),
            ground.create_id(),
            ground.fresh_native_ids(),
            resume_at_reset=ground.config.resume_at_reset,
            return_mode=ground.config.return_,
        )

    async def perform(self, effect: Effect) -> Happened | None:  # noqa: PLR0911 - one arm an effect
        """What came of the effect, `None` where its outcome is told elsewhere."""
        match effect:
            case SpawnLeg(leg):
                return await self._spawn(self._get_leg(leg))
            case StopLeg(leg):
                return await self._stop(leg)
            case PublishPacket(handoff):
                return await self._publish(handoff)
            case DeliverPacket(handoff, leg):
                return await self._deliver(handoff, leg)
            case DeliverTask(leg):
                await self._deliver_task(leg)
                return None
            case NoteRest():
                await asyncio.to_thread(self._ground.note_rest, effect)
                return None
            case WakeAt(at):
                await asyncio.sleep(max(0.0, (at - self._ground.clock.now()).total_seconds()))
                return ResetPassed()

    async def adopt(self, session: Session) -> bool:
        """Whether the newest leg's holder lives; then it is under watch again.

        What a dead holder left of its agent is ended.
        """
        leg = session.living_leg
        if leg is None:
            return False
        live = await adopt_leg(self._ground, leg, _find_known(self.host.events, leg.id))
        if live is not None:
            self._luggage = live.luggage
            self._follow(live)
            return True
        await end_lost_leg(self._ground, leg)
        return False

    async def close(self) -> None:
        """Nothing is watched any more; legs run on."""
        for task in self._tasks:
            task.cancel()
        for task in list(self._tasks):
            with contextlib.suppress(asyncio.CancelledError):
                await task
        for live in self._live.values():
            await live.close()

    def _get_leg(self, leg_id: str) -> Leg:
        return next(leg for leg in self.host.session.legs if leg.id == leg_id)

    def _get_handoff(self, handoff_id: str) -> Handoff | None:
        handoff = self.host.session.handoff
        return handoff if handoff is not None and handoff.id == handoff_id else None

    async def _spawn(self, leg: Leg) -> Happened:
        async with self._starting:
            live = self._live.get(leg.id)
            if live is None:
                try:
                    live = await start_leg(self._ground, self.host.session, leg, self._luggage)
                except RelayError as error:
                    return LegGone(leg.id, "unstarted", why=error.sentence)
                self._follow(live)
        return Spawned(leg.id, live.holder_pid, live.child_pid, live.child_born)

    def _follow(self, live: LiveLeg) -> None:
        self._live[live.leg.id] = live
        live.watch.tell = self.host.tell
        live.watch.renamed = self._renamed
        self._run(self._watch(live))

    async def _watch(self, live: LiveLeg) -> None:
        """The leg's whole life, and what is to be done after it."""
        ending = await live.watch.run()
        await self._ground.evidence.leave(live.leg.id)
        leg = self._get_leg(live.leg.id)
        await self._name(leg)
        await end_lost_leg(self._ground, leg)
        self._live.pop(leg.id, None)
        await live.close()
        self.host.tell(ending)

    def _renamed(self, leg_id: str, names: dict[str, str]) -> None:
        leg = self._get_leg(leg_id)
        native_id, transcript = names.get("native_id", leg.native_id), names.get("transcript", "")
        if native_id != leg.native_id:
            self._ground.evidence.update(leg_id, native_id=native_id)
        if (native_id, transcript) != (leg.native_id, leg.transcript):
            self._run(self.host.note(LegNamed(leg_id, native_id, transcript)))

    async def _name(self, leg: Leg) -> None:
        """The journal knows the agent's own session and transcript."""
        found = await asyncio.to_thread(
            find_native, self._ground, self.host.session, leg, self._luggage.environ
        )
        if found is not None and (leg.native_id, leg.transcript) != (found.native_id, found.path):
            await self.host.note(LegNamed(leg.id, found.native_id, found.path))

    async def _stop(self, leg_id: str) -> Happened | None:
        async with self._starting:
            live = self._live.get(leg_id)
        if live is None:
            leg = self._get_leg(leg_id)
            await end_lost_leg(self._ground, leg)
            return LegGone(leg_id, "stopped")
        try:
            await stop_leg(live.watch, live.adapter.quit)
        except RelayError as error:
            self.trouble = error.sentence
        return None

    async def _publish(self, handoff_id: str) -> Happened | None:
        handoff = self._get_handoff(handoff_id)
        if handoff is None:
            return None
        try:
            return await asyncio.to_thread(
                publish, self._ground, self.host.session, handoff, self._luggage.environ
            )
        except RelayError as error:
            return PublishFailed(handoff_id, error.sentence)

    async def _deliver(self, handoff_id: str, leg_id: str) -> Happened | None:
        handoff, live = self._get_handoff(handoff_id), self._live.get(leg_id)
        if handoff is None or live is None:
            return None
        deliver = live.adapter.deliver
        try:
            packet = ""
            if deliver.packet_by == "paste":
                packet = await asyncio.to_thread(read_packet_text, self._ground, self.host.session, handoff)
            await deliver_text(live.watch, deliver, packet=packet, prompt=deliver.opening)
        except RelayError as error:
            return DeliverFailed(handoff_id, leg_id, error.sentence)
        return Delivered(handoff_id, leg_id)

    async def _deliver_task(self, leg_id: str) -> None:
        live = self._live.get(leg_id)
        if live is None:
            return
        try:
            await deliver_text(
                live.watch, live.adapter.deliver, packet="", prompt=self._task or self.host.session.task
            )
        except RelayError as error:
            self.trouble = error.sentence

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _find_known(events: Sequence[Event], leg_id: str) -> Known:
    """What the journal holds of this leg's signals."""
    return frozenset(
        (event.body.rule, event.body.text, event.body.until)
        for event in events
        if isinstance(event.body, SignalSeen) and event.body.leg == leg_id
    )
