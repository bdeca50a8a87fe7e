"""Give a leg a text: paste it as one piece, submit it once, never over a person's typing."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

import msgspec

from agent_relay.domain.documents.adapter import Deliver
from agent_relay.domain.errors import RelayError
from agent_relay.domain.text.plain import replace_signs
from agent_relay.engine.legs import terminal_messages
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.session.views.waiting import DeliveryStage
from agent_relay.system.processes import pause_at
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_READY_S = 600.0
"""Longest wait for the agent's prompt, in seconds: a person may have to answer a trust question first."""
_SHOWN_S = 5.0
"""Longest time for a paste to appear in the agent's input line, in seconds; a return sent earlier is
swallowed: measured on two agents whose first prompt had just been painted."""
_READ_S = 25.0
"""Further seconds for an agent that shows neither the paste nor anything that swallowed it."""
_TYPING_S = 0.5
_PAINTED_S = 1.0
_WORK_S = 10.0
"""Longest time for an agent to open the page on which it works, in seconds."""
_REFUSALS = 3
_TOLD_REFUSALS = 20
_PASTES = 3

_TURN_S = 600.0
"""Longest wait, in seconds, for an agent that asks or still starts its tools before a return is pressed."""
_PAUSES_S = (1.5, 1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
"""Seconds to wait after each return. Measured from a return to the first sign of work: 0.1-3 s; on a
machine with ten times the work it can do, fifteen times as long. A text that has disappeared after all
waits but the last was lost."""

_Shown = Literal["shown", "asked", "lost"]


class TurnInput(msgspec.Struct, frozen=True):
    """Text for a leg as one turn; `name` distinguishes it from anything else the leg may be given.

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
    tell: terminal_messages.Tell,
    announce: terminal_messages.Announce = terminal_messages.announce_nothing,
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


class _Delivery:
    """The delivery of one text into one leg, from wherever an earlier daemon left it: pasted, then submitted.

    `_is_counted` is whether keys counted as typed belong to a line being typed, not to the answer to a
    question; `_was_pressed` whether a daemon that was killed pressed the first return; `_is_recorded` whether
    a prompt submitted by the first return would be heard of, where records tell of prompts at all.
    """

    def __init__(
        self,
        monitor: LegMonitor,
        deliver: Deliver,
        text: TurnInput,
        tell: terminal_messages.Tell,
        announce: terminal_messages.Announce,
    ) -> None:
        packet = replace_signs(text.packet, deliver.packet_escapes)
        self._data = "\n\n".join(part for part in (packet, text.prompt) if part).encode()
        self._monitor = monitor
        self._deliver = deliver
        self._tell = tell
        self._announce = announce
        self._pasted, self._submitted = f"pasted {text.name}", f"submitted {text.name}"
        self._is_counted = True
        self._was_pressed = False
        self._is_recorded = True
        self._stood = False
        self._presses = 0
        self._waited_s = 0.0

    async def run(self, note: str) -> None:
        """Deliver the text; raise RelayError on failure. `note` is the holder's record of an earlier try."""
        monitor, is_counted = self._monitor, True
        self._was_pressed = note == self._submitted
        self._presses = int(self._was_pressed)
        shown: _Shown = "shown" if self._was_pressed else "lost"
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
        self._is_counted = is_counted and shown != "asked"
        await self._submit()

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
                    await self._tell(terminal_messages.describe_wait(monitor))
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
        if not await terminal_messages.wait_with_reports(
            monitor, lambda: self._has_room() or self._is_theirs(), limit_s=limit_s, tell=self._tell
        ):
            return False
        # A line is painted in pieces: only one that stays typed is somebody's.
        if self._is_theirs() and not await monitor.wait_until(
            lambda: not self._is_theirs(), limit_s=_PAINTED_S
        ):
            await self._announce(DeliveryStage.WAITS_FOR_LINE)
            await terminal_messages.wait_with_reports(
                monitor, lambda: not self._is_theirs(), limit_s=limit_s, tell=self._tell
            )
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
            await terminal_messages.wait_with_reports(
                monitor, lambda: is_shown() or monitor.state == "ready", limit_s=_READY_S, tell=self._tell
            )
            await monitor.wait_until(is_shown, limit_s=_SHOWN_S)
        if is_asked:
            return "lost" if is_lost() else "asked"
        if is_lost():
            _log.info("paste-unseen leg=%s", monitor.leg.id)
            await terminal_messages.wait_with_reports(
                monitor, lambda: is_shown() or monitor.state != "ready", limit_s=_READ_S, tell=self._tell
            )
        return "lost" if is_lost() else "shown"

    async def _submit(self) -> None:
        """Press return until the agent is seen to take the text that is in its input line.

        An agent also reports that it is busy for reasons of its own: while it starts its tool servers, for
        one. Only its record of this very text shows that it was submitted; if an agent keeps no record of
        prompts, work shows it, provided that the input line held the text before and is clear of it now. A
        text that was lost is pasted once more.
        A return is pressed while the agent waits for a prompt, and again only while the text is still seen in
        the line and nobody has typed since: anywhere else it could say yes to a question. Raises RelayError
        if the agent ends, or nothing shows that it took the text.
        """
        monitor = self._monitor
        await self._press_and_wait(_PAUSES_S[:-1])
        if self._is_lost() and await self._is_left_alone():
            _log.warning("paste-lost leg=%s returns=%d", monitor.leg.id, self._presses)
            await self._paste()
            await self._find_shown()
            await asyncio.sleep(self._deliver.submit_delay_ms / 1000)
            await self._press_and_wait(_PAUSES_S)
        else:
            await self._press_and_wait(_PAUSES_S[-1:])
        if monitor.gone.is_set():
            raise RelayError(f"{monitor.leg.agent} ended while it was given its packet")
        if not self._is_taken():
            _log.warning(
                "submit-failed leg=%s returns=%d input=%s", monitor.leg.id, self._presses, monitor.input
            )
            raise RelayError(f"{monitor.leg.agent} did not begin to work on its packet")
        if self._presses != 1:
            _log.info("submitted leg=%s returns=%d", monitor.leg.id, self._presses)

    async def _press_and_wait(self, pauses_s: Sequence[float]) -> None:
        """Press return as needed, waiting for each of `pauses_s` in turn, until the text is taken."""
        monitor = self._monitor
        for pause_s in pauses_s:
            if self._is_taken():
                return
            await self._wait_for_turn()
            if self._is_taken():
                break
            if not self._presses or (monitor.state == "ready" and monitor.input == "typed"):
                await self._press()
            if await monitor.wait_until(self._is_taken, limit_s=pause_s):
                break
            self._waited_s += pause_s
            if self._waited_s >= terminal_messages.SILENT_S:
                await self._tell(
                    f"{monitor.leg.agent} has not begun to work on its packet for {self._waited_s:.0f} s"
                )
            await monitor.settle_evidence()

    def _is_lost(self) -> bool:
        """Tell whether the text was in a line that is empty now, of a waiting agent that recorded none of it.

        Only records that would show it count as proof; a turn that nobody saw may be over by now.
        """
        monitor = self._monitor
        can_tell = monitor.hears_prompts and monitor.hears_old_prompts and monitor.own.is_comparable
        is_gone = self._stood and monitor.state == "ready" and monitor.input == "empty"
        return can_tell and is_gone and not self._is_taken()

    async def _is_left_alone(self) -> bool:
        """Tell whether nobody pressed a key since the first return.

        A person who cleared the line did not want the text.
        """
        age_s = (await self._monitor.holder.request("status")).get("key_age_s")
        return not isinstance(age_s, int | float) or age_s > self._waited_s

    def _is_taken(self) -> bool:
        """Tell whether the text was submitted, by us or by somebody at the terminal, or the agent is gone."""
        monitor = self._monitor
        self._stood = self._stood or monitor.input == "typed"
        if monitor.gone.is_set() or monitor.own.is_heard:
            return True
        if self._was_pressed and not monitor.hears_old_prompts:
            # What a daemon of before did is told by nothing else.
            return (monitor.state == "busy" or monitor.leg.was_busy) and monitor.input != "typed"
        if monitor.hears_prompts and monitor.own.is_comparable and self._is_recorded:
            return False
        is_clear = monitor.input != "typed" if self._presses else monitor.input == "empty"
        has_stood = self._stood or not monitor.sees_input
        return monitor.state == "busy" and is_clear and has_stood and (self._presses > 0 or self._stood)

    async def _wait_for_turn(self) -> None:
        """Wait until the agent waits for a prompt or took this one. Raise RelayError after ten minutes."""
        monitor = self._monitor
        if self._is_taken() or monitor.state == "ready":
            return
        _log.info("submit-waits leg=%s state=%s", monitor.leg.id, monitor.state)
        is_ours = await terminal_messages.wait_with_reports(
            monitor, lambda: self._is_taken() or monitor.state == "ready", limit_s=_TURN_S, tell=self._tell
        )
        if not is_ours:
            raise RelayError(f"{terminal_messages.describe_wait(monitor)}, after {_TURN_S:.0f} s")

    async def _press(self) -> None:
        """Press return, unless somebody has typed into the line meanwhile: it is theirs to send."""
        monitor = self._monitor
        if not self._presses:
            # What a live stream said before somebody listened is never said again.
            self._is_recorded = monitor.hears_old_prompts or monitor.is_listening
        try:
            is_held = await self._announce(DeliveryStage.SUBMITTED)
            is_theirs = not is_held and (self._is_counted or self._presses > 0)
            await monitor.holder.type(
                self._deliver.submit.encode(), unless_typed=is_theirs, note=self._submitted
            )
        except HolderError as error:
            if error.why != "typed":
                raise
            _log.info("submit-left leg=%s why=typed", monitor.leg.id)
            return
        pause_at("after return")
        self._presses += 1
        if self._presses > 1:
            _log.warning(
                "submit-again leg=%s returns=%d after_s=%.1f", monitor.leg.id, self._presses, self._waited_s
            )


async def _see_prompt(monitor: LegMonitor) -> None:
    """Wait until the prompt of a ready agent is painted.

    A window title reports ready before the prompt, or a question, is on the screen.
    """
    if monitor.input == "hidden" and monitor.sees_input:
        await monitor.wait_until(
            lambda: monitor.gone.is_set() or monitor.state != "ready" or monitor.input != "hidden",
            limit_s=_SHOWN_S,
        )
