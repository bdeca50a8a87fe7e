"""Perform one session's effects: starts and stops legs, publishes and delivers packets."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta

from agent_relay.domain import effects
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import Body
from agent_relay.domain.inputs import Input, LegGone, Published, ResetPassed, Restarted, Spawned
from agent_relay.domain.session import NO_TERMS, Handoff, Leg, Session, Terms
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.engine._digest_writer import DigestWriter
from agent_relay.engine._idle_agent import AgentTimers, ContextRelief, SessionDeliveries, sleep_until
from agent_relay.engine.legs import shutdown
from agent_relay.engine.legs.leg_start import LegOrder, find_known, start_leg, was_begun
from agent_relay.engine.legs.limits import RestWriter, StandbySetups
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.supervisor import LegSupervisor
from agent_relay.engine.legs.terminal_messages import BarSender, SessionNotifier, show_message
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.publishing import limited_work
from agent_relay.engine.services import LaunchEnvironment, Services, SessionHost
from agent_relay.engine.threads import DedicatedThread
from agent_relay.redact.known_values import collect_known
from agent_relay.session.decision import DecisionContext
from agent_relay.session.views.messages import session_folder
from agent_relay.session.views.waiting import HandoffBar
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.removal import find_full
from agent_relay.system.failures import find_passing, find_shortage
from agent_relay.system.limited_process import LimitedProcess

_UPGRADE_S = 8.0
"""Longest absence of our files during an upgrade, in seconds: package managers remove before they write."""
_UPGRADE_LOOK_S = 0.25
_ENVIRONMENT_S = 4.0
"""Longest wait for an attached terminal to find the next daemon and send its environment, in seconds."""

EnterTree = Callable[[str], contextlib.AbstractAsyncContextManager[None]]
"""Claims the working tree at a path while a leg is started in it. Raises TreeOwnedError."""


class EffectRunner:
    """Performs one session's effects, with the environment the user's last terminal sent."""

    def __init__(
        self, services: Services, narratives: NarrativeWriter, enter_tree: EnterTree, host: SessionHost
    ) -> None:
        self._services = services
        self._enter_tree = enter_tree
        self._host = host
        self._live: dict[str, LegMonitor] = {}
        self._standbys = StandbySetups(services, self._live)
        self._bar = BarSender(services, host, self._live)
        self._checkpoints = limited_work.CheckpointKeeper(services, host, self._live)
        self._supervisor = LegSupervisor(services, host, self._live, self._bar, self._checkpoints.keep_last)
        self._notifier = SessionNotifier(services, len(host.events), self._live)
        # The daemon's own environment is the last resort: it is another terminal's, and has no keys.
        self._launch_environment = LaunchEnvironment(dict(os.environ))
        self._environment_came = asyncio.Event()
        # What no disk is asked for is known at once: words may be journalled before anything is decided.
        self._environment_secrets = collect_known(os.environ.items(), from_file=False)
        self._secrets: tuple[LaunchEnvironment | None, frozenset[str]] = (None, frozenset())
        self._task = ""
        self._effort = ""
        self._troubles: dict[str, str] = {}
        self._rests = RestWriter(services, self._troubles)
        self._starting = asyncio.Lock()
        # What is decided waits for this session's own folders only.
        self._deciding = DedicatedThread("deciding")
        self._building = LimitedProcess()
        self._packets = limited_work.PacketPublisher(self._load_and_publish, end=self._building.end)
        self._digesting = LimitedProcess()
        folders, end = narratives.digest_folders, self._digesting.end
        self._digests = DigestWriter(services, host, folders, self._load_and_digest, end=end)
        self._deliveries = SessionDeliveries(services, self._live, self._bar)
        self._relief = ContextRelief(narratives, self._live, services.config.context.build_wishes())
        self._preparation = limited_work.HandoffPreparation()
        self._agent_timers = AgentTimers(services.clock, self._live)

    @property
    def trouble(self) -> str:
        """The reason why an effect cannot be performed; empty if there is none."""
        return self._supervisor.trouble or self._deliveries.trouble or next(iter(self._troubles.values()), "")

    @property
    def bar(self) -> HandoffBar:
        """The bottom line that the session's terminals should show now."""
        return self._bar.bar

    def take(self, launch_environment: LaunchEnvironment, task: str = "") -> None:
        """Start legs with this environment, size, arguments and model from now on; `task` is as typed."""
        self._launch_environment = launch_environment
        self._effort = self._services.find_chosen_effort(launch_environment) or self._effort
        self._environment_secrets = collect_known(launch_environment.environ.items(), from_file=False)
        self._task = task or self._task
        self._environment_came.set()

    def offer(self, launch_environment: LaunchEnvironment) -> bool:
        """Take it unless the session already has a user's environment; return whether it was taken."""
        is_wanted = not self._environment_came.is_set()
        if is_wanted:
            self.take(launch_environment)
        return is_wanted

    async def await_launch_environment(self) -> None:
        """Wait up to 4 s for the user's environment; not if no terminal can have it, as after a reboot."""
        leg = self._host.session.leg
        is_ending = self._host.session.state is State.STOPPING
        if leg is None or is_ending or not shutdown.can_use_pids(self._services, leg):
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_ENVIRONMENT_S):
                await self._environment_came.wait()

    def get_launch_environment(self, leg: str) -> LaunchEnvironment:
        """Return the launch environment of the living leg, or else that of the next one."""
        return self._live[leg].launch_environment if leg in self._live else self._launch_environment

    def find_live(self, leg: str) -> LegMonitor | None:
        """Return the leg while it is monitored, else `None`."""
        return self._live.get(leg)

    async def await_live(self, leg: str, *, limit_s: float) -> LegMonitor | None:
        """Return the leg once it is monitored; `None` if it is not being taken over, or not in time."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._supervisor.await_adoption(leg), limit_s)
        return self._live.get(leg)

    async def redact(self, body: Body) -> Body:
        """Return `body` as it may be journalled. Raise RelayError if its secrets cannot be searched for."""
        return await limited_work.redact_event(body, known=self._secrets[1] | self._environment_secrets)

    async def build_context(self, session: Session, *, may_stop_agent: bool = True) -> DecisionContext:
        """Return the facts from which the state machine may decide now.

        Unless the decision `may_stop_agent`, nobody checks whether a successor could be started, which takes
        60 ms the first time.
        """
        services, launch = self._services, self._launch_environment
        availability = await self._deciding.run(services.read_availability, launch.environ)
        is_staked = may_stop_agent and session.living_leg is not None
        fault = await self._find_fault() if is_staked else ""
        if self._secrets[0] is not launch:
            known = await self._deciding.run(gather_secrets, session.root, launch.environ, cwd=session.cwd)
            self._secrets = (launch, known)
        spoilt = await self._deciding.run(self._find_spoilt, session) if session.may_owe_packet else {}
        context = DecisionContext(
            services.clock.now(),
            {
                name: replace(state, fault=fault) if fault else state
                for name, state in availability.items()
                if name in {*session.roster, *services.adapters}
            },
            services.create_id(),
            services.create_id(),
            services.fresh_native_ids(launch.agent, launch.args),
            resume_at_reset=services.config.resume_at_reset is True,
            agent_may_continue=services.config.resume_at_reset is not False,
            quiet=services.config.build_quiet_hours(),
            return_mode=services.config.return_,
            reset_grace=timedelta(seconds=services.config.reset_grace_s),
            zone=services.zone,
            fallback_models=services.config.find_fallbacks(launch.agent, launch.model),
            context=services.config.context.build_wishes(),
            draft_near_limit=services.config.handoff.draft_near_limit,
            spoilt=spoilt,
            owner=services.owner,
            standbys=self._standbys.list_setups(session, launch),
            efforts=services.find_efforts(self._effort, session.leg, launch),
        )
        return self._rests.include(context)

    def _find_spoilt(self, session: Session) -> dict[str, str]:
        """Return, by agent, why the packet that waits for it cannot be used."""
        from agent_relay.agents.adapters import build_renderer
        from agent_relay.engine.publishing.packet_pipeline import find_spoilt

        folder = session_folder(session)
        return find_spoilt(session, lambda agent: build_renderer(self._services.get_adapter(agent), folder))

    async def _find_fault(self) -> str:
        """Return why no successor could be started, or be given a packet; empty if one could.

        An installation that is being replaced is waited for, up to 8 s and only once. If no leg lives that
        would be stopped for a successor, callers do not ask: the start is tried and fails instead.
        """
        legs, project = self._services.folders.legs, session_folder(self._host.session)
        if full := await self._deciding.run(find_full, (legs, project)):
            self._troubles["room"] = full
            return full
        self._troubles.pop("room", None)
        fault = await self._deciding.run(self._services.holders.find_fault)
        left_s = 0.0 if "installation" in self._troubles else _UPGRADE_S
        while fault:
            self._troubles["installation"] = fault
            if left_s <= 0:
                return fault
            await asyncio.sleep(_UPGRADE_LOOK_S)
            left_s -= _UPGRADE_LOOK_S
            fault = await self._deciding.run(self._services.holders.find_fault)
        self._troubles.pop("installation", None)
        return ""

    async def perform(self, effect: effects.Effect) -> Input | None:  # noqa: C901, PLR0911, PLR0912 - one arm an effect
        """Perform the effect; return its result, or `None` if that is reported elsewhere."""
        match effect:
            case effects.SpawnLeg(leg):
                return await self._spawn(self._get_leg(leg))
            case effects.StopLeg(leg):
                return await self._stop(leg)
            case effects.PublishPacket(handoff) if (due := self._find_handoff(handoff)) is not None:
                await self._digests.write(due, self._launch_environment)
                return await self._packets.publish(self._host, due, self._launch_environment.environ)
            case effects.DeliverPacket(handoff, leg) if (due := self._find_handoff(handoff)) is not None:
                return await self._deliveries.deliver_packet(self._host.session, due, leg)
            case effects.PublishPacket() | effects.DeliverPacket():
                return None
            case effects.DeliverTask(leg):
                task = self._task or self._host.session.task
                return await self._try("task", self._deliveries.deliver_task(task, leg))
            case effects.NoteRest():
                await self._rests.write(effect)
                return None
            case effects.ShowMessage(leg):
                await show_message(self._live.get(leg), self._host.session, self._services.zone)
                return None
            case effects.WakeAt(at):
                await sleep_until(self._services.clock, at)
                return ResetPassed()
            case effects.Draft(leg):
                await self._relief.draft(self._host.session, leg, self.get_launch_environment(leg))
                return None
            case effects.DraftPacket(leg, agent):
                if self._host.session.handoff is None:
                    # At the limit it is built anew: a draft that cannot be made costs nothing.
                    with contextlib.suppress(RelayError):
                        environ = self.get_launch_environment(leg).environ
                        await self.save_packet(agent, "", environ, NO_TERMS)
                return None
            case effects.AwaitQuiet(leg):
                return await self._relief.await_quiet(leg)
            case effects.CancelContinue(leg, at):
                return await self._try("timer", self._agent_timers.cancel(leg, at))
            case effects.TellContext(leg):
                return await self._try("context-note", self._relief.tell(self._host.session, leg))
            case effects.Compact(leg):
                return await self._try("compact", self._relief.compact(leg))

    async def adopt(self, session: Session) -> Restarted:
        """Tell whether the newest leg's holder lives; if so, monitor the leg as soon as its holder answers.

        The next leg gets the launch environment of that one, or of the newest leg whose holder was kept.
        """
        # What its agent was asked meanwhile is journalled before anything is decided.
        found_here = await self._deciding.run(gather_secrets, session.root, {}, cwd=session.cwd)
        self._secrets = (None, found_here)
        if session.standby is not None:
            self._supervisor.adopt_later(session.standby.leg)
        leg, began = session.living_leg, True
        if leg is not None:
            known = find_known(self._host.events, leg.id)
            if await self._supervisor.adopt(leg, known, self._take_over):
                self._preparation.prepare()
                return Restarted(leg_lives=True)
            began = await asyncio.to_thread(was_begun, self._services, leg)
        if (found := await shutdown.find_launch_environment(self._services, session)) is not None:
            self.take(found)
        return Restarted(leg_lives=False, leg_began=began)

    def see(self, session: Session) -> None:
        """React to a change of the session; release what is kept for its legs once it has ended."""
        self._relief.see(session)
        self._digests.see(session)
        self._checkpoints.see(session)
        self._notifier.see(session, self._host.events, self._launch_environment.environ)
        self._standbys.see(session)
        self._bar.update()
        if session.state is State.ENDED:
            self._supervisor.release(session)

    async def save_packet(self, agent: str, focus: str, environ: Mapping[str, str], terms: Terms) -> str:
        """Publish a packet of the session's present state for `agent`, without beginning a handoff.

        Returns the path of its text, relative to the session's folder. Raises RelayError if it cannot be
        written.
        """
        session = self._host.session
        leg = session.leg
        if leg is None:
            raise RelayError("no agent has worked in this session yet")
        now, packet_id = self._services.clock.now(), self._services.create_id()
        occasion = Handoff(packet_id, leg.id, leg.agent, agent, "manual", now, focus=focus, terms=terms)
        return await self._packets.save(self._host, occasion, environ)

    @property
    def is_collecting(self) -> bool:
        """True while the end of an agent, or of a holder no longer needed, is being processed."""
        return self._supervisor.is_collecting(self._host.session)

    async def close(self) -> None:
        """Stop monitoring; legs run on."""
        self._preparation.close()
        await self._notifier.close()
        await self._bar.close()
        await self._supervisor.close()
        await self._checkpoints.close()
        self._deciding.close()

    def _take_over(self, live: LegMonitor) -> None:
        self.take(live.launch_environment, live.launch_environment.task)

    def _get_leg(self, leg_id: str) -> Leg:
        return next(leg for leg in self._host.session.all_legs if leg.id == leg_id)

    def _find_handoff(self, handoff_id: str) -> Handoff | None:
        handoff = self._host.session.handoff
        return handoff if handoff is not None and handoff.id == handoff_id else None

    async def _spawn(self, leg: Leg) -> Input | None:
        if not await self._supervisor.await_adoption(leg.id):
            return None
        async with self._starting:
            if await self._supervisor.promote(leg.id):
                return None
            live, session = self._live.get(leg.id), self._host.session
            is_ahead = session.is_standby(leg.id)
            if live is None:
                try:
                    prompt = self._task or (session.turn.prompt if session.turn is not None else "")
                    launch = replace(self._launch_environment, task=self._task)
                    if is_ahead:
                        launch = await self._standbys.prepare(session, launch)
                    async with self._enter_tree(session.root):
                        order = LegOrder(session, leg, launch, prompt, self.bar)
                        live = await start_leg(self._services, order, self._supervisor)
                except RelayError as error:
                    if find_shortage(error):
                        raise
                    # A standby that is to take over meanwhile is started once more, for that.
                    if is_ahead and not self._host.session.is_standby(leg.id):
                        return None
                    return LegGone(leg.id, "unstarted", why=error.sentence)
                self._supervisor.follow(live)
                self._preparation.prepare()
        self._troubles.pop("stop", None)
        self._troubles.pop("task", None)
        return Spawned(leg.id, live.leg.holder_pid, live.leg.child_pid, live.leg.child_born)

    async def _stop(self, leg_id: str) -> Input | None:
        """Stop the leg; return its end only if there is no monitor that would report it."""
        leg = self._get_leg(leg_id)
        async with self._starting:
            live = self._live.get(leg_id)
        if live is None:
            await self._supervisor.end_by_force(leg)
            await shutdown.end_lost_leg(self._services, leg)
            return LegGone(leg_id, "stopped")
        # Keys pressed from now on are for the successor.
        await self._bar.show()
        if self._host.session.state is State.STOPPING or self._host.session.is_standby(leg_id):
            # No leg follows that would need what it carries.
            await shutdown.dismiss_holder(live)
        elif not leg.headless:
            await live.wait_for_prompt()
        try:
            await shutdown.stop_leg(live, live.adapter.quit)
        except RelayError as error:
            self._troubles["stop"] = error.sentence
            await self._supervisor.end_by_force(live.leg)
        return None

    def _load_and_publish(self, session: Session, handoff: Handoff, environ: Mapping[str, str]) -> Published:
        """Make the handoff's packet visible; load the code for it only now, as a start would wait for it."""
        from agent_relay.engine.publishing.packet_pipeline import publish_handoff_packet

        return publish_handoff_packet(self._services, self._building, session, handoff, environ)

    def _load_and_digest(self, session: Session, handoff: Handoff, environ: Mapping[str, str]) -> str:
        """Build the digest of the predecessor's work; the code for it is loaded as for the packet."""
        from agent_relay.engine.publishing.packet_pipeline import build_handoff_digest

        return build_handoff_digest(self._services, self._digesting, session, handoff, environ)

    async def _try(self, what: str, work: Awaitable[Input | None]) -> Input | None:
        """Return what `work` returns; `None` if it cannot be done, with the reason kept for `trouble`."""
        try:
            happened = await work
        except RelayError as error:
            if find_passing(error):
                raise
            self._troubles[what] = error.sentence
            return None
        self._troubles.pop(what, None)
        return happened
