"""Submits the text in an agent's input line with a return, and checks that the agent took it."""

import logging
from collections.abc import Awaitable, Callable, Sequence

from agent_relay.domain.errors import RelayError
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.legs.terminal_messages import (
    SILENT_S,
    Announce,
    Tell,
    announce_nothing,
    describe_wait,
    wait_with_reports,
)
from agent_relay.session.handoff.status_bar import DeliveryStage
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
    """

    def __init__(
        self, watch: LegMonitor, keys: str, *, note: str, tell: Tell, announce: Announce = announce_nothing
    ) -> None:
        self._watch = watch
        self._keys = keys.encode()
        self.is_counted = True
        """Whether keys counted as typed belong to a line being typed, not to the answer to a question."""
        self.was_pressed = False
        """Whether a daemon that was killed pressed the first return."""
        self.paste_again: Callable[[], Awaitable[object]] | None = None
        """Pastes a text that was lost into the line once more; called at most once."""
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
        watch = self._watch
        self._presses = int(self.was_pressed)
        await self._press_and_wait(_PAUSES_S[:-1])
        if self.paste_again is not None and self._is_lost() and await self._is_left_alone():
            _log.warning("paste-lost leg=%s returns=%d", watch.leg.id, self._presses)
            await self.paste_again()
            await self._press_and_wait(_PAUSES_S)
        else:
            await self._press_and_wait(_PAUSES_S[-1:])
        if watch.gone.is_set():
            raise RelayError(f"{watch.leg.agent} ended while it was given its packet")
        if not self.is_taken():
            _log.warning("submit-failed leg=%s returns=%d input=%s", watch.leg.id, self._presses, watch.input)
            raise RelayError(f"{watch.leg.agent} did not begin to work on its packet")
        if self._presses != 1:
            _log.info("submitted leg=%s returns=%d", watch.leg.id, self._presses)

    async def _press_and_wait(self, pauses_s: Sequence[float]) -> None:
        """Press return as needed, waiting for each of `pauses_s` in turn, until the text is taken."""
        watch = self._watch
        for pause_s in pauses_s:
            if self.is_taken():
                return
            await self._wait_for_turn()
            if self.is_taken():
                break
            if not self._presses or (watch.state == "ready" and watch.input == "typed"):
                await self._press()
            if await watch.wait_until(self.is_taken, limit_s=pause_s):
                break
            self._waited_s += pause_s
            if self._waited_s >= SILENT_S:
                await self._tell(
                    f"{watch.leg.agent} has not begun to work on its packet for {self._waited_s:.0f} s"
                )
            await watch.settle_evidence()

    def _is_lost(self) -> bool:
        """Tell whether the text was in a line that is empty now, of a waiting agent that recorded none of it.

        Only records that would show it count as proof; a turn that nobody saw may be over by now.
        """
        watch = self._watch
        can_tell = watch.hears_prompts and watch.hears_old_prompts and watch.own.is_comparable
        is_gone = self._stood and watch.state == "ready" and watch.input == "empty"
        return can_tell and is_gone and not self.is_taken()

    async def _is_left_alone(self) -> bool:
        """Tell whether nobody pressed a key since the first return.

        A person who cleared the line did not want the text.
        """
        age_s = (await self._watch.holder.request("status")).get("key_age_s")
        return not isinstance(age_s, int | float) or age_s > self._waited_s

    def is_taken(self) -> bool:
        """Tell whether the text was submitted, by us or by somebody at the terminal, or the agent is gone."""
        watch = self._watch
        self._stood = self._stood or watch.input == "typed"
        if watch.gone.is_set() or watch.own.is_heard:
            return True
        if self.was_pressed and not watch.hears_old_prompts:
            # What a daemon of before did is told by nothing else.
            return (watch.state == "busy" or watch.leg.was_busy) and watch.input != "typed"
        if watch.hears_prompts and watch.own.is_comparable:
            return False
        is_clear = watch.input != "typed" if self._presses else watch.input == "empty"
        has_stood = self._stood or not watch.sees_input
        return watch.state == "busy" and is_clear and has_stood and (self._presses > 0 or self._stood)

    async def _wait_for_turn(self) -> None:
        """Wait until the agent waits for a prompt or took this one. Raise RelayError after ten minutes."""
        watch = self._watch
        if self.is_taken() or watch.state == "ready":
            return
        _log.info("submit-waits leg=%s state=%s", watch.leg.id, watch.state)
        is_ours = await wait_with_reports(
            watch, lambda: self.is_taken() or watch.state == "ready", limit_s=_TURN_S, tell=self._tell
        )
        if not is_ours:
            raise RelayError(f"{describe_wait(watch)}, after {_TURN_S:.0f} s")

    async def _press(self) -> None:
        """Press return, unless somebody has typed into the line meanwhile: it is theirs to send."""
        watch = self._watch
        try:
            is_held = await self._announce(DeliveryStage.SUBMITTED)
            is_theirs = not is_held and (self.is_counted or self._presses > 0)
            await watch.holder.type(self._keys, unless_typed=is_theirs, note=self._note)
        except HolderError as error:
            if error.why != "typed":
                raise
            _log.info("submit-left leg=%s why=typed", watch.leg.id)
            return
        pause_at("after return")
        self._presses += 1
        if self._presses > 1:
            _log.warning(
                "submit-again leg=%s returns=%d after_s=%.1f", watch.leg.id, self._presses, self._waited_s
            )
