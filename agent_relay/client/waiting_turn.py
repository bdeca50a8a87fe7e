"""A headless turn that waits while every agent rests, and is tried again at the first reset."""

import contextlib
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, tzinfo

from agent_relay.client.connection import Connection
from agent_relay.client.turn_follower import Event, Interrupted, SignalTrap, TurnFollower
from agent_relay.domain.values.moments import parse_moment, render_moment
from agent_relay.system.clock import Clock

_SOONEST = timedelta(seconds=5)
"""The shortest wait: a reset that has passed without effect is not asked about all the time."""
_LOOK_S = 30.0
"""How often the clock is read: a machine that sleeps stops timers, but no reset."""


class WaitingTurn:
    """One turn, tried again at each reset until an agent has done it.

    `connect` finds or starts a daemon, `show` prints one event. `find_open` returns the first moment from
    another one on at which work may go on by itself; `None` for never. `warn` is as in `TurnFollower`.
    """

    def __init__(
        self,
        connect: Callable[[], Connection],
        show: Callable[[Event], None],
        *,
        clock: Clock,
        zone: tzinfo,
        find_open: Callable[[datetime], datetime | None],
        warn: Callable[[str], None],
    ) -> None:
        self._follower = TurnFollower(connect, self._take, warn=warn)
        self._show = show
        self._clock = clock
        self._zone = zone
        self._find_open = find_open
        self._held: Event | None = None
        self._legs = 0
        self.ended_by = 0

    def run(self, wish: Mapping[str, object]) -> Event:
        """Run the turn and return its last event, shown like all others.

        `ended_by` is the Unix signal that ended it; 0 for none. A turn ends with one `end`: that of a turn
        that is tried again is not shown.
        """
        most = wish.get("most")
        while True:
            last = self._follower.run(wish)
            self.ended_by = self._follower.ended_by
            left = most - self._legs if isinstance(most, int) else 1
            at = self._find_start(last) if not self.ended_by and left > 0 else None
            if at is None or not self._await(last, at):
                self._end()
                return last
            self._held = None
            more = {"most": left} if isinstance(most, int) else {}
            wish = {**wish, **more, "session": last["session"]}

    def _take(self, event: Event) -> None:
        self._legs += event.get("type") == "leg"
        if event.get("type") == "end" and event.get("outcome") == "resting":
            self._held = event
        else:
            self._show(event)

    def _end(self) -> None:
        if self._held is not None:
            self._show(self._held)
        self._held = None

    def _find_start(self, last: Event) -> datetime | None:
        """Return when to try again; `None` if the turn is over, no reset is known, or work may not go on."""
        if last.get("outcome") != "resting":
            return None
        reset = parse_moment(last.get("resets_at"))
        opens = self._find_open(reset) if reset is not None else None
        return max(opens, self._clock.now() + _SOONEST) if opens is not None else None

    def _await(self, last: Event, at: datetime) -> bool:
        """Wait until `at`; return false if a Unix signal came before."""
        when = render_moment(at, self._clock.now(), self._zone)
        waiting = {
            "type": "waiting",
            "session": last["session"],
            "resets_at": last.get("resets_at", ""),
            "until": at.isoformat(),
            "message": f"{last.get('message', '')} Waiting until {when}; Ctrl-C stops waiting.".strip(),
        }
        with SignalTrap() as signals:
            self._show(waiting)
            with contextlib.suppress(Interrupted), signals.breaking():
                signals.check()
                while (left_s := (at - self._clock.now()).total_seconds()) > 0:
                    time.sleep(min(left_s, _LOOK_S))
                return True
        self.ended_by = signals.number
        return False
