"""Give legs what they are to work on: pasted as one piece, submitted once, never over a person's typing."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from agent_relay.domain.documents.adapter import Deliver
from agent_relay.domain.errors import RelayError
from agent_relay.domain.inputs import Delivered, DeliverFailed, Input, TaskGiven
from agent_relay.domain.session import Handoff, Session
from agent_relay.engine.delivery._submission import Submission
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import (
    Announce,
    BarSender,
    Tell,
    announce_nothing,
    describe_wait,
    wait_with_reports,
)
from agent_relay.engine.services import Services
from agent_relay.session.views.waiting import DeliveryProgress, DeliveryStage
from agent_relay.system.failures import find_passing
from agent_relay.system.processes import pause_at
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_READY_S = 600.0
"""How long a packet waits for the agent's prompt: a person may have to answer a trust question first."""
_SHOWN_S = 5.0
"""How long a paste may take to appear in the agent's input line; a return sent earlier is swallowed:
measured on two agents whose first prompt had just been painted."""
_READ_S = 25.0
"""How much longer an agent may take that shows neither the paste nor anything that swallowed it."""
_TYPING_S = 0.5
_PAINTED_S = 1.0
_WORK_S = 10.0
"""How long an agent may take to open the page on which it works."""
_REFUSALS = 3
_TOLD_REFUSALS = 20
_PASTES = 3

_Shown = Literal["shown", "asked", "lost"]


@dataclass(frozen=True, slots=True)
class TurnInput:
    """What a leg is to be given as one turn; `name` distinguishes it from anything else it may be given.

    `packet` (may be empty) is pasted with the adapter's escapes, `prompt` as it is.
    """

    name: str
    packet: str
    prompt: str


async def deliver_text(
    monitor: LegMonitor,
    deliver: Deliver,
    text: TurnInput,
    *,
    tell: Tell,
    announce: Announce = announce_nothing,
) -> None:
    """Paste and submit `text`, once, and wait until the agent is seen to take it.

    `tell` gets what delays it, `announce` what is being done. The holder knows how far a killed daemon had
    come: the delivery goes on from there. Raises RelayError if the agent never becomes ready, somebody keeps
    typing, or nothing shows that the agent took it.
    """
    monitor.own.expect(text.prompt, text.packet)
    await monitor.settle_evidence()
    note = await monitor.holder.read_note()
    if not monitor.own.is_heard:
        await _Delivery(monitor, deliver, text, tell, announce).run(note or "")
        if deliver.opens_page:
            await monitor.wait_until(
                lambda: monitor.gone.is_set() or (monitor.state == "busy" and monitor.input != "typed"),
                limit_s=_WORK_S,
            )
    monitor.say_working()
    if note != "":
        # What was submitted before may have been worked on to its end.
        await monitor.settle_evidence()


async def forget_text(monitor: LegMonitor) -> None:
    """Clear the holder's note of a text that could not be delivered, so that the next try begins anew.

    Raises HolderError if the holder does not take it.
    """
    await monitor.holder.type(b"", note="")


async def type_line(monitor: LegMonitor, deliver: Deliver, line: str) -> None:
    """Type and submit `line` as one of the agent's own commands, unless somebody is typing.

    Keys pressed meanwhile come after it. Raises HolderError if somebody is in the middle of a line, or the
    holder is gone.
    """
    await monitor.holder.type(line.encode(), unless_typed=True, goes_on=True)
    await asyncio.sleep(deliver.submit_delay_ms / 1000)
    await monitor.holder.type(deliver.submit.encode())


class _Delivery:
    """The delivery of one text into one leg, from wherever an earlier daemon left it."""

    def __init__(
        self, monitor: LegMonitor, deliver: Deliver, text: TurnInput, tell: Tell, announce: Announce
    ) -> None:
        packet = _escape(text.packet, deliver.packet_escapes)
        self._data = "\n\n".join(part for part in (packet, text.prompt) if part).encode()
        self._monitor = monitor
        self._deliver = deliver
        self._tell = tell
        self._announce = announce
        self._pasted, self._submitted = f"pasted {text.name}", f"submitted {text.name}"

    async def run(self, note: str) -> None:
        """Deliver the text; raise RelayError on failure. `note` is the holder's record of an earlier try."""
        monitor, is_counted = self._monitor, True
        shown: _Shown = "shown" if note == self._submitted else "lost"
        if note == self._pasted:
            await self._announce(DeliveryStage.GIVING)
            shown = await self._find_shown()
        for _ in range(_PASTES):
            if shown != "lost":
                break
            is_counted = await self._paste()
            shown = await self._find_shown()
            if shown == "lost":
                _log.warning("paste-again leg=%s", monitor.leg.id)
        await asyncio.sleep(self._deliver.submit_delay_ms / 1000)
        submission = Submission(
            monitor,
            self._deliver.submit,
            note=self._submitted,
            tell=self._tell,
            announce=self._announce,
            is_counted=is_counted and shown != "asked",
            was_pressed=note == self._submitted,
            paste_again=self._paste_again,
        )
        await submission.run()

    async def _paste_again(self) -> None:
        """Paste a text that was lost after its return once more, and look whether it appears."""
        await self._paste()
        await self._find_shown()
        await asyncio.sleep(self._deliver.submit_delay_ms / 1000)

    async def _paste(self) -> bool:
        """Paste the text once the agent waits for a prompt and nobody is typing one.

        Returns `False` if keys are held, or if keys still count as typed although the line is seen to be
        empty. Raises RelayError if the agent ends or is not ready in time.
        """
        monitor = self._monitor
        deadline, refusals = asyncio.get_running_loop().time() + _READY_S, 0
        while (left_s := deadline - asyncio.get_running_loop().time()) > 0:
            if not await self._wait_for_room(left_s):
                break
            is_held = await self._hold_keys()
            if monitor.gone.is_set():
                raise RelayError(f"{monitor.leg.agent} ended before it was given its packet")
            if not self._has_room():
                continue
            try:
                # A key that answered a question without a return is counted as typed for ever: after a while
                # an input line that is seen to be empty is believed.
                seen_empty = refusals >= _REFUSALS and monitor.input == "empty"
                data = _PASTE_BEGIN + self._data + _PASTE_END
                is_counted = not (is_held or seen_empty)
                await monitor.holder.type(data, unless_typed=is_counted, note=self._pasted)
            except HolderError as error:
                if error.why != "typed":
                    raise
                refusals += 1
                if refusals == _TOLD_REFUSALS:
                    await self._tell(describe_wait(monitor))
                await asyncio.sleep(_TYPING_S)
                await monitor.settle_evidence()
            else:
                pause_at("after paste")
                return is_counted
        raise RelayError(f"{monitor.leg.agent} was not ready for its packet within {_READY_S:.0f} s")

    def _has_room(self) -> bool:
        """Tell whether the agent waits for a prompt with nothing in its line, or is gone."""
        monitor = self._monitor
        return monitor.gone.is_set() or (monitor.state == "ready" and monitor.input != "typed")

    def _is_theirs(self) -> bool:
        """Tell whether the agent waits for a prompt with something in its line."""
        monitor = self._monitor
        return not monitor.gone.is_set() and monitor.state == "ready" and monitor.input == "typed"

    async def _wait_for_room(self, limit_s: float) -> bool:
        """Wait until the agent is worth another look; return `False` if it is not within `limit_s` seconds.

        Text that stays in the line is somebody's: wait as long again, and do not hold their keys.
        """
        monitor = self._monitor
        if not await wait_with_reports(
            monitor, lambda: self._has_room() or self._is_theirs(), limit_s=limit_s, tell=self._tell
        ):
            return False
        # A line is painted in pieces: only one that stays typed is somebody's.
        if self._is_theirs() and not await monitor.wait_until(
            lambda: not self._is_theirs(), limit_s=_PAINTED_S
        ):
            await self._announce(DeliveryStage.WAITS_FOR_LINE)
            await wait_with_reports(monitor, lambda: not self._is_theirs(), limit_s=limit_s, tell=self._tell)
            await self._announce(DeliveryStage.NONE)
        return True

    async def _hold_keys(self) -> bool:
        """Hold the terminals' keys and look at what was typed before; return whether they are held."""
        await _see_prompt(self._monitor)
        if not self._has_room() or not await self._announce(DeliveryStage.GIVING):
            return False
        # What was typed before keys had to wait may be on the screen only now.
        await self._monitor.settle_evidence()
        return True

    async def _find_shown(self) -> _Shown:
        """Wait for the paste to appear; return what became of it, as far as that can be seen.

        A question that comes up over it swallows it, and so does an agent that restarts itself. An agent that
        is slow has not read it yet: pasted again, it would be there twice.
        """
        monitor = self._monitor

        def is_shown() -> bool:
            return monitor.gone.is_set() or monitor.own.is_heard or monitor.input == "typed"

        def is_lost() -> bool:
            return not is_shown() and monitor.input == "empty" and monitor.state == "ready"

        await monitor.wait_until(lambda: is_shown() or monitor.state == "asking", limit_s=_SHOWN_S)
        is_asked = monitor.state == "asking"
        if is_asked or (monitor.state != "ready" and not is_shown()):
            await wait_with_reports(
                monitor, lambda: is_shown() or monitor.state == "ready", limit_s=_READY_S, tell=self._tell
            )
            await monitor.wait_until(is_shown, limit_s=_SHOWN_S)
        if is_asked:
            return "lost" if is_lost() else "asked"
        if is_lost():
            _log.info("paste-unseen leg=%s", monitor.leg.id)
            await wait_with_reports(
                monitor, lambda: is_shown() or monitor.state != "ready", limit_s=_READ_S, tell=self._tell
            )
        return "lost" if is_lost() else "shown"


async def _see_prompt(monitor: LegMonitor) -> None:
    """Wait until the prompt of a ready agent is painted.

    A window title reports ready before the prompt, or a question, is on the screen.
    """
    if monitor.input == "hidden" and monitor.sees_input:
        await monitor.wait_until(
            lambda: monitor.gone.is_set() or monitor.state != "ready" or monitor.input != "hidden",
            limit_s=_SHOWN_S,
        )


def _escape(packet: str, escapes: Mapping[str, str]) -> str:
    for mark, escaped in escapes.items():
        packet = packet.replace(mark, escaped)
    return packet


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
