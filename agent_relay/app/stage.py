"""Where one session's effects are performed: legs started and stopped, packets published and delivered."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from agent_relay.app.following import Following
from agent_relay.app.ground import Ground
from agent_relay.app.handing import Handing
from agent_relay.app.headless_legs import was_begun
from agent_relay.app.kept import find_luggage
from agent_relay.app.leg_ends import end_lost_leg
from agent_relay.app.legs import LiveLeg, Luggage, find_known, start_leg
from agent_relay.app.narrating import Narrating
from agent_relay.app.packets import Packets
from agent_relay.app.publishing import publish
from agent_relay.app.relief import Relief
from agent_relay.app.saying import say_message
from agent_relay.app.stopping import dismiss_holder, stop_leg
from agent_relay.app.threads import OwnThread
from agent_relay.app.waking import sleep_until
from agent_relay.domain.context_effect import AwaitQuiet, Compact, Draft
from agent_relay.domain.effect import (
    DeliverPacket,
    DeliverTask,
    Effect,
    Happened,
    LegGone,
    NoteRest,
    PublishPacket,
    ResetPassed,
    Restarted,
    Say,
    Spawned,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.errors import RelayError
from agent_relay.domain.event import Body
from agent_relay.domain.session import Handoff, Leg, Session, State
from agent_relay.domain.terms import Terms
from agent_relay.logic.outcome import World
from agent_relay.logic.redact_event import redact_body
from agent_relay.system.secrets import gather_secrets

if TYPE_CHECKING:
    from agent_relay.app.host import Host

_LEDGER_WAITS_S = (0, 2, 5, 10, 15, 30)


class Stage:
    """Performs one session's effects. `luggage` is what the user's last terminal brought."""

    def __init__(self, ground: Ground, narrating: Narrating, stirred: Callable[[], None]) -> None:
        self._ground = ground
        self._host: Host | None = None
        self._following = Following(ground, lambda: self._luggage.environ, stirred)
        self._luggage = Luggage(dict(os.environ))
        self._secrets: tuple[Luggage | None, frozenset[str]] = (None, frozenset())
        self._task = ""
        self._troubles: dict[str, str] = {}
        self._starting = asyncio.Lock()
        # What is decided waits for this session's own folders only.
        self._deciding = OwnThread("deciding")
        self._packets = Packets(partial(publish, ground))
        self._handing = Handing(ground, self._following.live)
        self._relief = Relief(narrating, self._following.live)

    @property
    def trouble(self) -> str:
        """What keeps an effect from being performed; empty for nothing."""
        waits = self._following.trouble or self._handing.trouble
        return waits or next(iter(self._troubles.values()), "")

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
        self._task = task or self._task

    def get_luggage(self, leg: str) -> Luggage:
        """What the living leg was started with, or what the next one would be."""
        live = self._following.live.get(leg)
        return live.luggage if live is not None else self._luggage

    def find_live(self, leg: str) -> LiveLeg | None:
        """The leg while it is under watch."""
        return self._following.live.get(leg)

    def redact(self, body: Body) -> Body:
        """`body` as it may stand in a journal."""
        return redact_body(body, known=self._secrets[1])

    async def build_world(self, session: Session) -> World:
        """What the machine may know now."""
        ground, luggage = self._ground, self._luggage
        availability = await self._deciding.run(ground.read_availability, luggage.environ)
        if self._secrets[0] is not luggage:
            known = await self._deciding.run(gather_secrets, session.root, luggage.environ, cwd=session.cwd)
            self._secrets = (luggage, known)
        return World(
            ground.clock.now(),
            {
                name: state
                for name, state in availability.items()
                if name in {*session.roster, *ground.adapters}
            },
            ground.create_id(),
            ground.create_id(),
            ground.fresh_native_ids(luggage.agent, luggage.args),
            resume_at_reset=ground.config.resume_at_reset,
            return_mode=ground.config.return_,
            zone=ground.zone,
            fallback_models=ground.config.find_fallbacks(luggage.agent, luggage.model),
            context=ground.config.context.build_wishes(),
            draft_near_limit=ground.config.handoff.draft_near_limit,
        )

    async def perform(self, effect: Effect) -> Happened | None:  # noqa: C901, PLR0911 - one arm an effect
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
                task = self._task or self.host.session.task
                return await self._try("task", self._handing.deliver_task(task, leg))
            case NoteRest():
                await self._note_rest(effect)
                return None
            case Say(leg):
                await say_message(self._following.live.get(leg), self.host.session, self._ground.zone)
                return None
            case WakeAt(at):
                await sleep_until(self._ground.clock, at)
                return ResetPassed()
            case Draft(leg):
                await self._relief.draft(self.host.session, leg, self.get_luggage(leg))
                return None
            case AwaitQuiet(leg):
                return await self._relief.await_quiet(leg)
            case Compact(leg):
                return await self._try("compact", self._relief.compact(leg))

    async def adopt(self, session: Session) -> Restarted:
        """Whether the newest leg's holder lives; then it is under watch as soon as it answers.

        The next leg gets what that one took along, or the newest one whose holder was kept.
        """
        leg, began = session.living_leg, True
        if leg is not None:
            known = find_known(self.host.events, leg.id)
            if await self._following.adopt(leg, self.host, known, self._take_over):
                return Restarted(leg_lives=True)
            began = await asyncio.to_thread(was_begun, self._ground, leg)
        self._luggage = await find_luggage(self._ground, session) or self._luggage
        return Restarted(leg_lives=False, leg_began=began)

    def see(self, session: Session) -> None:
        """The session has changed; nothing is kept for one that has ended."""
        self._relief.see(session)
        if session.state is State.ENDED:
            self._following.release(session)

    async def save_packet(self, agent: str, focus: str, environ: Mapping[str, str], terms: Terms) -> str:
        """A packet of the session's present state for `agent` is published, and no handoff begun.

        Its text's path relative to the session's folder. Raises RelayError where it cannot be written.
        """
        session = self.host.session
        leg = session.leg
        if leg is None:
            raise RelayError("no agent has worked in this session yet")
        now, packet_id = self._ground.clock.now(), self._ground.create_id()
        occasion = Handoff(packet_id, leg.id, leg.agent, agent, "manual", now, focus=focus, terms=terms)
        return await self._packets.save(self.host, occasion, environ)

    @property
    def is_collecting(self) -> bool:
        """Whether an agent that is gone, or a holder of no more use, is still being seen off."""
        return self._following.is_collecting(self.host.session)

    async def close(self) -> None:
        """Nothing is watched any more; legs run on."""
        await self._following.close()
        self._deciding.close()

    def _take_over(self, live: LiveLeg) -> None:
        self._luggage = live.luggage
        self._task = live.luggage.task or self._task

    def _get_leg(self, leg_id: str) -> Leg:
        return next(leg for leg in self.host.session.legs if leg.id == leg_id)

    def _get_handoff(self, handoff_id: str) -> Handoff | None:
        handoff = self.host.session.handoff
        return handoff if handoff is not None and handoff.id == handoff_id else None

    async def _spawn(self, leg: Leg) -> Happened | None:
        if not await self._following.await_adoption(leg.id):
            return None
        async with self._starting:
            live = self._following.live.get(leg.id)
            if live is None:
                try:
                    session = self.host.session
                    prompt = self._task or (session.turn.prompt if session.turn is not None else "")
                    luggage = replace(self._luggage, task=self._task)
                    live = await start_leg(self._ground, session, leg, luggage, prompt=prompt)
                except RelayError as error:
                    return LegGone(leg.id, "unstarted", why=error.sentence)
                self._following.follow(live, self.host)
        self._troubles.pop("stop", None)
        self._troubles.pop("task", None)
        return Spawned(leg.id, live.holder_pid, live.child_pid, live.child_born)

    async def _stop(self, leg_id: str) -> Happened | None:
        """The leg's end is told by its watch; by this where there is none."""
        async with self._starting:
            live = self._following.live.get(leg_id)
        leg = self._get_leg(leg_id)
        if live is None:
            await self._following.end_by_force(leg)
            await end_lost_leg(self._ground, leg)
            return LegGone(leg_id, "stopped")
        if self.host.session.state is State.STOPPING:
            # No leg follows that would need what it carries.
            await dismiss_holder(live.watch)
        try:
            await stop_leg(live.watch, live.adapter.quit)
        except RelayError as error:
            self._troubles["stop"] = error.sentence
            pids = replace(leg, child_pid=live.child_pid, child_born=live.child_born)
            await self._following.end_by_force(pids)
        return None

    async def _note_rest(self, note: NoteRest) -> None:
        """The ledger knows of the limit; a disk that refuses is asked again for a minute."""
        for wait_s in _LEDGER_WAITS_S:
            await asyncio.sleep(wait_s)
            try:
                await asyncio.to_thread(self._ground.note_rest, note)
            except RelayError as error:
                self._troubles["ledger"] = error.sentence
            else:
                self._troubles.pop("ledger", None)
                return

    async def _publish(self, handoff_id: str) -> Happened | None:
        handoff = self._get_handoff(handoff_id)
        if handoff is None:
            return None
        return await self._packets.publish(self.host, handoff, self._luggage.environ)

    async def _deliver(self, handoff_id: str, leg_id: str) -> Happened | None:
        handoff = self._get_handoff(handoff_id)
        if handoff is None:
            return None
        return await self._handing.deliver_packet(self.host.session, handoff, leg_id)

    async def _try(self, what: str, work: Awaitable[Happened | None]) -> Happened | None:
        """What `work` comes back with; `None` where it cannot be done, and why is what `trouble` says."""
        try:
            happened = await work
        except RelayError as error:
            self._troubles[what] = error.sentence
            return None
        self._troubles.pop(what, None)
        return happened
