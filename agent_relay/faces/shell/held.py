"""Why what waits is not sent by itself, and when it is again."""

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agent_relay.faces.cli.printing import render_moment
from agent_relay.faces.shell.typed_ahead import TypedAhead

if TYPE_CHECKING:
    from agent_relay.faces.shell.returning import Returning

_RESTING = "every agent rests"
_LOOK_S = 30.0
_WHY = {"resting": _RESTING, "stopped": "the turn was stopped"}


class Held:
    """Whether something holds the messages of `typed`; `why` is empty where nothing does.

    `changed` is called after every change, `go_on` where they are to be sent, `say` with a line to show.
    """

    def __init__(
        self,
        typed: TypedAhead,
        *,
        changed: Callable[[], None],
        go_on: Callable[[], None],
        say: Callable[[str], None],
    ) -> None:
        self._typed = typed
        self._changed = changed
        self._go_on = go_on
        self._say = say
        self._reset: asyncio.TimerHandle | None = None
        self.returning: Returning | None = None
        self.why = ""

    def hold(self, why: str) -> None:
        """What waits stays where it is until the person says so."""
        self._forget_reset()
        self.why = why if len(self._typed) else ""
        self._changed()

    def release(self) -> None:
        """Nothing holds what waits."""
        self._forget_reset()
        self.why = ""
        self._changed()

    def settle(self, last: Mapping[str, object], message: str) -> None:
        """What a turn's end means for what waits; `message` was its own."""
        outcome = str(last.get("outcome"))
        if outcome == "done":
            return
        if outcome == "resting":
            self.rest(message, str(last.get("resets_at", "")))
            return
        self.hold(_WHY.get(outcome, "the turn has failed"))

    def rest(self, message: str, moment: str) -> None:
        """`message`, which nobody can take before `moment` (ISO 8601), is the first of those that wait."""
        if message:
            self._typed.put_first(message)
        self.hold(_RESTING)
        moment = self.returning.put_off(moment) if self.returning is not None else moment
        wait_s = self.returning.count_wait(moment) if self.returning is not None else None
        if wait_s is None or self.returning is None or not self.why:
            return
        if self.returning.goes_on:
            self.why = f"{_RESTING}, sent at {render_moment(moment)}"
            self._changed()
        self._await_reset(moment, wait_s)

    def _await_reset(self, moment: str, wait_s: float) -> None:
        """The clock is looked at now and then: a machine that sleeps stops timers, and no reset."""
        loop = asyncio.get_running_loop()
        if wait_s <= _LOOK_S:
            self._reset = loop.call_later(wait_s, self._end_rest)
            return
        self._reset = loop.call_later(_LOOK_S, self._look_at_clock, moment)

    def _look_at_clock(self, moment: str) -> None:
        wait_s = self.returning.count_wait(moment) if self.returning is not None else None
        if wait_s is not None:
            self._await_reset(moment, wait_s)

    def _end_rest(self) -> None:
        """The first reset has come, and the person did nothing else meanwhile."""
        if self.returning is not None and self.returning.goes_on:
            self._go_on()
            return
        self.hold("the first reset has passed")
        if self.why:
            self._say("→ The first reset has passed: Enter sends what waits.")

    def _forget_reset(self) -> None:
        if self._reset is not None:
            self._reset.cancel()
            self._reset = None
