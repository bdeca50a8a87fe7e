"""Submits the text in an agent's input line with a return, and checks that the agent took it."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from agent_relay.domain.errors import RelayError
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import (
    SILENT_S,
    Announce,
    Tell,
    describe_wait,
    wait_with_reports,
)
from agent_relay.session.views.waiting import DeliveryStage
from agent_relay.system.processes import pause_at
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)
_TURN_S = 600.0
"""How long an agent may ask, or still be starting its tools, before a return may be pressed."""
_PAUSES_S = (1.5, 1.5, 3.0, 6.0, 12.0, 24.0, 48.0)
"""How long to wait after each return. Measured from a return to the first sign of work: 0.1-3 s; on a
machine with ten times the work it can do, fifteen times as long. A text that has disappeared after all
waits but the last was lost."""


class Submission:
    """The submission of one text that is in an agent's input line.

    An agent also reports that it is busy for reasons of its own: while it starts its tool servers, for one.
    Only its record of this very text shows that it was submitted; if an agent keeps no record of prompts,
    work shows it, provided that the input line held the text before and is clear of it now.

    `is_counted` is whether keys counted as typed belong to a line being typed, not to the answer to a
    question; `was_pressed` whether a daemon that was killed pressed the first return. `paste_again` pastes a
    text that was lost into the line once more; it is called at most once.
    """

    def __init__(
        self,
        monitor: LegMonitor,
        keys: str,
        *,
        note: str,
        tell: Tell,
        announce: Announce,
        is_counted: bool,
        was_pressed: bool,
        paste_again: Callable[[], Awaitable[object]],
    ) -> None:
        self._monitor = monitor
        self._keys = keys.encode()
        self._is_counted = is_counted
        self._was_pressed = was_pressed
        self._paste_again = paste_again
        self._note = note
        self._tell = tell
        self._announce = announce
        self._stood = False
        self._presses = 0
        self._waited_s = 0.0

    async def run(self) -> None:
        """Press return until the agent is seen to take the text.

        A return is pressed while the agent waits for a prompt, and again only while the text is still seen in
        the line and nobody has typed since: anywhere else it could say yes to a question. Raises RelayError
        if the agent ends, or nothing shows that it took the text.
        """
        monitor = self._monitor
        self._presses = int(self._was_pressed)
        await self._press_and_wait(_PAUSES_S[:-1])
        if self._is_lost() and await self._is_left_alone():
            _log.warning("paste-lost leg=%s returns=%d", monitor.leg.id, self._presses)
            await self._paste_again()
            await self._press_and_wait(_PAUSES_S)
        else:
            await self._press_and_wait(_PAUSES_S[-1:])
        if monitor.gone.is_set():
            raise RelayError(f"{monitor.leg.agent} ended while it was given its packet")
        if not self.is_taken():
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
            if self.is_taken():
                return
            await self._wait_for_turn()
            if self.is_taken():
                break
            if not self._presses or (monitor.state == "ready" and monitor.input == "typed"):
                await self._press()
            if await monitor.wait_until(self.is_taken, limit_s=pause_s):
                break
            self._waited_s += pause_s
            if self._waited_s >= SILENT_S:
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
        return can_tell and is_gone and not self.is_taken()

    async def _is_left_alone(self) -> bool:
        """Tell whether nobody pressed a key since the first return.

        A person who cleared the line did not want the text.
        """
        age_s = (await self._monitor.holder.request("status")).get("key_age_s")
        return not isinstance(age_s, int | float) or age_s > self._waited_s

    def is_taken(self) -> bool:
        """Tell whether the text was submitted, by us or by somebody at the terminal, or the agent is gone."""
        monitor = self._monitor
        self._stood = self._stood or monitor.input == "typed"
        if monitor.gone.is_set() or monitor.own.is_heard:
            return True
        if self._was_pressed and not monitor.hears_old_prompts:
            # What a daemon of before did is told by nothing else.
            return (monitor.state == "busy" or monitor.leg.was_busy) and monitor.input != "typed"
        if monitor.hears_prompts and monitor.own.is_comparable:
            return False
        is_clear = monitor.input != "typed" if self._presses else monitor.input == "empty"
        has_stood = self._stood or not monitor.sees_input
        return monitor.state == "busy" and is_clear and has_stood and (self._presses > 0 or self._stood)

    async def _wait_for_turn(self) -> None:
        """Wait until the agent waits for a prompt or took this one. Raise RelayError after ten minutes."""
        monitor = self._monitor
        if self.is_taken() or monitor.state == "ready":
            return
        _log.info("submit-waits leg=%s state=%s", monitor.leg.id, monitor.state)
        is_ours = await wait_with_reports(
            monitor, lambda: self.is_taken() or monitor.state == "ready", limit_s=_TURN_S, tell=self._tell
        )
        if not is_ours:
            raise RelayError(f"{describe_wait(monitor)}, after {_TURN_S:.0f} s")

    async def _press(self) -> None:
        """Press return, unless somebody has typed into the line meanwhile: it is theirs to send."""
        monitor = self._monitor
        try:
            is_held = await self._announce(DeliveryStage.SUBMITTED)
            is_theirs = not is_held and (self._is_counted or self._presses > 0)
            await monitor.holder.type(self._keys, unless_typed=is_theirs, note=self._note)
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
