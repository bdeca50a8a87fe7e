"""Act at an agent's prompt: give it packet or task, cancel its timer, have it draft, compact its context."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial

from agent_relay.domain.documents.adapter import Deliver
from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import CompactSkipped, Delivered, DeliverFailed, Input, LegQuiet, TaskGiven
from agent_relay.domain.limits import ContextWishes, Level
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import BarSender
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.services import LaunchEnvironment, Services
from agent_relay.engine.text_delivery import TurnInput, deliver_text
from agent_relay.packet.narrative import NarrativeOutcome
from agent_relay.session.views.messages import render_told_context
from agent_relay.session.views.waiting import DeliveryProgress, DeliveryStage
from agent_relay.store.context_notes import leave_note
from agent_relay.system.clock import Clock
from agent_relay.system.failures import find_passing
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)


_LONGEST_SLEEP_S = 30.0


async def sleep_until(clock: Clock, at: datetime) -> None:
    """Sleep until `at` by the wall clock, which runs on in a sleeping machine and which a person may set."""
    while (left_s := (at - clock.now()).total_seconds()) > 0:  # noqa: ASYNC110 - nothing tells when a clock was set
        await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))


_KEYS_S = 5.0
"""Seconds without a key press after which nobody counts as typing."""
_SHOWN_S = 3.0
"""Longest wait for an agent to show that its timer is cancelled, in seconds."""
_FIRST_LOOK_S = 0.5
_LONGEST_LOOK_S = 10.0


class AgentTimers:
    """Cancels the timers of one session's agents."""

    def __init__(self, clock: Clock, live: Mapping[str, LegMonitor]) -> None:
        self._clock = clock
        self._live = live
        self._under_way: set[str] = set()

    async def cancel(self, leg_id: str, at: datetime) -> None:
        """Cancel the agent's timer before `at`, unless someone is typing.

        The keys mean something else on any other screen: they are pressed only if the countdown was just
        seen. Raises RelayError if its adapter has no such keys.
        """
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return
        keys = live.cancel_keys
        if not keys:
            agent = live.leg.agent
            raise RelayError(
                f"{agent} will continue by itself and relay cannot cancel that;"
                f" cancel it on {agent}'s own screen"
            )
        self._under_way.add(leg_id)
        try:
            await self._cancel(live, keys, at)
        finally:
            self._under_way.discard(leg_id)

    async def _cancel(self, monitor: LegMonitor, keys: str, at: datetime) -> None:
        pause_s = _FIRST_LOOK_S
        while not monitor.gone.is_set() and self._clock.now() < at:
            await monitor.settle_evidence()
            if monitor.continues_at is None:
                return
            # The countdown stands under an empty line; the same key would interrupt a turn.
            if monitor.state == "ready" and not await is_typing(monitor) and await _press(monitor, keys):
                _log.info("timer-cancelled leg=%s", monitor.leg.id)
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)


async def _press(monitor: LegMonitor, keys: str) -> bool:
    """Press the keys; return whether the agent shows that its timer is cancelled, or is gone.

    `False` also if someone is typing: no key is pressed then.
    """
    try:
        await monitor.holder.type(keys.encode(), unless_typed=True)
    except HolderError as error:
        if error.why != "typed":
            raise
        return False
    return await monitor.wait_until(
        lambda: monitor.gone.is_set() or monitor.continues_at is None, limit_s=_SHOWN_S
    )


async def is_typing(monitor: LegMonitor) -> bool:
    """Tell whether somebody types at the leg's terminals, or left text in its input line."""
    status = await monitor.holder.request("status")
    age_s = status.get("key_age_s")
    is_pressing = status.get("typed") != 0 or (isinstance(age_s, int | float) and age_s < _KEYS_S)
    return is_pressing or monitor.input == "typed"


_WAIT_S = 900.0
"""Longest wait for a quiet moment, in seconds; the end of the next turn starts another wait."""
_SETTLE_S = 1.0
"""Longest delay between the start of a turn and its first sign on the screen, in seconds."""
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0


class ContextRelief:
    """Relieves full contexts of one session's legs, and keeps track of the drafts it has requested."""

    def __init__(
        self, narratives: NarrativeWriter, live: Mapping[str, LegMonitor], wishes: ContextWishes
    ) -> None:
        self._narratives = narratives
        self._live = live
        self._wishes = wishes
        self._waiting: set[str] = set()
        self._drafts: dict[str, asyncio.Event] = {}

    async def draft(self, session: Session, leg_id: str, launch_environment: LaunchEnvironment) -> None:
        """Have the agent write a handoff document; log a failure, since handoffs work without one."""
        live = self._live.get(leg_id)
        if live is None or leg_id in self._drafts:
            return
        over = self._drafts[leg_id] = asyncio.Event()
        try:
            if await _end_turn(live):
                result = await self._narratives.draft(session, launch_environment)
                level = logging.INFO if result.kind is NarrativeOutcome.WRITTEN else logging.WARNING
                _log.log(level, "draft session=%s outcome=%s", session.id, result.kind.value)
        except RelayError as error:
            _log.info("no-draft session=%s why=%s", session.id, type(error).__name__)
        finally:
            del self._drafts[leg_id]
            over.set()

    async def await_quiet(self, leg_id: str) -> LegQuiet | None:
        """Return `LegQuiet` once the leg waits for a prompt and nobody types; `None` if not in 15 minutes.

        Also `None` if the leg is gone, or another call already waits for it.
        """
        live = self._live.get(leg_id)
        if live is None or leg_id in self._waiting:
            return None
        self._waiting.add(leg_id)
        try:
            async with asyncio.timeout(_WAIT_S):
                if (draft := self._drafts.get(leg_id)) is not None:
                    await draft.wait()
                return LegQuiet(leg_id) if await _be_quiet(live) else None
        except (TimeoutError, RelayError):
            _log.info("never-quiet leg=%s", leg_id)
            return None
        finally:
            self._waiting.discard(leg_id)

    async def compact(self, leg_id: str) -> CompactSkipped | None:
        """Tell the agent to compact; return `CompactSkipped` if somebody began to type meanwhile.

        Raises RelayError if the agent has no such command, or its holder does not take it.
        """
        live = self._live.get(leg_id)
        if live is None:
            return None
        deliver = live.adapter.deliver
        if not deliver.compact:
            raise RelayError(f"{live.leg.agent} has no command that makes its conversation shorter")
        try:
            await type_line(live, deliver, deliver.compact)
        except HolderError as error:
            if error.why != "typed":
                raise
            return CompactSkipped(leg_id)
        return None

    async def tell(self, session: Session, leg_id: str) -> None:
        """Leave word for the agent of how full its context is, or take older word back if it is not any more.

        Raises RelayError if it cannot be written; the agent's tool `status` says the same.
        """
        live, context = self._live.get(leg_id), session.context
        if live is None:
            return
        values, text = live.launch_environment.values, ""
        if not Level.ADVISE.is_above(context.level):
            text = render_told_context(context, self._wishes, has_tools=bool(values.get("mcp_program")))
        await asyncio.to_thread(leave_note, values["leg_folder"], text)

    def see(self, session: Session) -> None:
        """Cancel a draft that would come too late: a handoff is under way, or no leg lives."""
        if session.handoff is not None or session.living_leg is None:
            self._narratives.drop_draft(session.id)


async def _end_turn(monitor: LegMonitor) -> bool:
    """Wait for the end of the agent's turn; return whether it came while the agent lived.

    The agent's records may be ahead of its screen.
    """
    await asyncio.sleep(_SETTLE_S)
    await monitor.settle_evidence()
    is_over = await monitor.wait_until(
        lambda: monitor.gone.is_set() or monitor.state == "ready", limit_s=_WAIT_S
    )
    return is_over and not monitor.gone.is_set()


async def _be_quiet(monitor: LegMonitor) -> bool:
    """Wait until the agent waits for a prompt and nobody types; return `False` if the agent ends first.

    Work and questions are waited out: if records are ahead of the screen, nothing else would cause another
    check. A prompt is believed if it is still there a moment later: some agents show theirs between two steps
    of a turn.
    """
    pause_s, was_quiet = _FIRST_PAUSE_S, False
    while not monitor.gone.is_set():
        await monitor.settle_evidence()
        if monitor.state in ("busy", "asking"):
            await monitor.wait_until(
                lambda: monitor.gone.is_set() or monitor.state == "ready", limit_s=_WAIT_S
            )
            pause_s, was_quiet = _FIRST_PAUSE_S, False
            continue
        is_quiet = not await is_typing(monitor) and monitor.state == "ready"
        if is_quiet and was_quiet:
            return True
        was_quiet = is_quiet
        if is_quiet:
            await asyncio.sleep(_SETTLE_S)
            continue
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
    return False


async def type_line(monitor: LegMonitor, deliver: Deliver, line: str) -> None:
    """Type and submit `line` as one of the agent's own commands, unless somebody is typing.

    Keys pressed meanwhile come after it. Raises HolderError if somebody is in the middle of a line, or the
    holder is gone.
    """
    await monitor.holder.type(line.encode(), unless_typed=True, goes_on=True)
    await asyncio.sleep(deliver.submit_delay_ms / 1000)
    await monitor.holder.type(deliver.submit.encode())


async def forget_text(monitor: LegMonitor) -> None:
    """Clear the holder's note of a text that could not be delivered, so that the next try begins anew.

    Raises HolderError if the holder does not take it.
    """
    await monitor.holder.type(b"", note="")


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
        """The reason why a delivery under way waits, as a sentence; empty if none does."""
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
                from agent_relay.engine.publishing.packet_pipeline import read_packet_text

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
    """Show on the bar of its leg how far one packet has come."""

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
