"""Follow one leg's usage windows through their readings, and decide when one is near its limit.

Readings lag, jump, stand still, go back and move their resets. Only this module decides what that means.
"""

from datetime import datetime, timedelta

import msgspec

from agent_relay.domain.documents.rules import UsageWindow
from agent_relay.domain.limits import FULL_PERCENT, NearLimitWishes
from agent_relay.domain.values import is_later, replace

MOST_PERCENT = 1000.0
"""Highest use that is believed: a provider may count above a hundred percent, but not so far."""
_ROUNDING = timedelta(minutes=10)
"""Closer times are one reset: windows are hours apart; clocks, countdowns and rounding, minutes."""
_DROP = 5.0
"""Percentage points: a window whose reset moved and whose use fell by more has begun anew."""
_SLACK = 10.0
"""Percentage points below the mark at which a window is no longer near its limit."""
_NOISE = 2.0
"""Percentage points by which sources round differently; a reading lower by more has to be confirmed."""
_AGREED = timedelta(minutes=1)
"""Time after which a second lower reading is believed: a single one may come from a late answer."""


class WindowReading(msgspec.Struct, frozen=True):
    """One reading of a usage window: percent used and when it starts anew; 0 minutes are unknown.

    `model` is the one it is about, empty for the whole account.
    """

    window: UsageWindow
    used: float
    resets_at: datetime
    at: datetime
    minutes: int = 0
    model: str = ""


class _Growth(msgspec.Struct, frozen=True):
    """The use of a window when it was last seen to have grown, and how long the agent had worked by then."""

    worked_s: float
    used: float


class WindowTrack(msgspec.Struct, frozen=True):
    """One window from its first reading until it begins anew.

    `reading` is the newest one, with the highest use that is not disproved. `growths` are the newest growths
    of its use, oldest first. `lower` is a reading that claims less and that no other one has confirmed.
    `near_at` is the use at which it came near its limit; `None` until then, and once it clearly is not.
    """

    reading: WindowReading
    growths: tuple[_Growth, ...]
    lower: WindowReading | None = None
    near_at: float | None = None


class Pace(msgspec.Struct, frozen=True):
    """The time an agent has worked in all and on one prompt, in seconds of its own working time.

    `turn_began_s` is when its turn began, `turns_s` how long the last ones took.
    """

    worked_s: float = 0.0
    turn_began_s: float = 0.0
    turns_s: tuple[float, ...] = ()

    @property
    def left_s(self) -> float:
        """Seconds the current turn may still take: as long as earlier turns, or as long again as so far."""
        elapsed = self.worked_s - self.turn_began_s
        usual = max(self.turns_s, default=_USUAL_TURN_S)
        return min(max(usual - elapsed, elapsed, _SHORTEST_TURN_S), _LONGEST_TURN_S)


_USUAL_TURN_S = 300.0
_SHORTEST_TURN_S = 120.0
_LONGEST_TURN_S = 900.0
_MOST_TURNS = 5
_MOST_GROWTHS = 12
_SHORTEST_BASE_S = 180.0
"""Least work over which a rate is measured, in seconds: use is told in whole percent, and in jumps."""
_LONGEST_UNSEEN_S = 1800.0
"""Longest time, in seconds, a reading that stands still while the agent works is extended by its rate."""
_LEAST_BY_RATE = 50.0
"""Percent of use below which a rate alone is ignored: the first requests of a window cost most."""
_ANSWERED_S = 30.0
"""Seconds of work after its window was full that show that an agent has not met its limit yet."""


def follow(
    track: WindowTrack | None, reading: WindowReading, worked_s: float, now: datetime
) -> WindowTrack | None:
    """Return the track after one more reading; one older than the last, or of a past window, is ignored.

    `worked_s` is how long the agent has worked by then. A window has begun anew if its old reset has passed,
    or if its reset moved and its use fell.
    """
    if reading.resets_at <= reading.at:
        return track
    if track is None:
        return WindowTrack(reading, (_Growth(worked_s, reading.used),))
    known = track.reading
    if reading.at != known.at and not is_later(reading.at, known.at, now):
        return track
    has_moved = abs(reading.resets_at - known.resets_at) > _ROUNDING
    is_over = known.resets_at <= reading.at or reading.used < known.used - _DROP
    if has_moved and is_over:
        return WindowTrack(reading, (_Growth(worked_s, reading.used),))
    if reading.used < known.used - _NOISE:
        return _doubt(track, reading, worked_s)
    used = max(known.used, reading.used)
    growths = track.growths
    if used > known.used:
        growths = (*growths, _Growth(worked_s, used))[-_MOST_GROWTHS:]
    return replace(track, reading=replace(reading, used=used), growths=growths, lower=None)


def _doubt(track: WindowTrack, reading: WindowReading, worked_s: float) -> WindowTrack:
    """Return the track after a reading of less use: it counts once a later one confirms it."""
    lower = track.lower
    if lower is not None and reading.at - lower.at >= _AGREED:
        return WindowTrack(reading, (_Growth(worked_s, reading.used),), near_at=track.near_at)
    known = replace(track.reading, resets_at=reading.resets_at, at=reading.at)
    return replace(track, reading=known, lower=lower or reading)


def estimate_rate(track: WindowTrack) -> float:
    """Return how many points a second of work takes, at the quicker of the recent and the usual rate."""
    newest = track.growths[-1]
    bases = [one for one in track.growths if newest.worked_s - one.worked_s >= _SHORTEST_BASE_S]
    rates = [(newest.used - one.used) / (newest.worked_s - one.worked_s) for one in bases[:1] + bases[-1:]]
    return max(rates, default=0.0)


def judge(track: WindowTrack, pace: Pace, wishes: NearLimitWishes) -> str:
    """Return why the window is near its limit: `share` or `rate`; empty if it is not.

    By rate it is near if it would be full before the turn under way ends. A full window is not near: the
    agent says itself that it met its limit, unless it works on.
    """
    used, window = track.reading.used, track.reading.window
    if window.near_percent <= 0:
        return ""
    unseen_s = min(pace.worked_s - track.growths[-1].worked_s, _LONGEST_UNSEEN_S)
    if used >= FULL_PERCENT:
        return "share" if unseen_s >= _ANSWERED_S else ""
    if used >= (wishes.percent or window.near_percent):
        return "share"
    if not wishes.by_rate or used < _LEAST_BY_RATE:
        return ""
    expected = used + estimate_rate(track) * (unseen_s + pace.left_s)
    return "rate" if expected >= FULL_PERCENT else ""


def settle(track: WindowTrack, *, is_near: bool) -> WindowTrack:
    """Return the track with what was judged: a near limit ends well below the use at which it began."""
    used = track.reading.used
    if track.near_at is None:
        return replace(track, near_at=used) if is_near else track
    return replace(track, near_at=None) if not is_near and used < track.near_at - _SLACK else track


_LONGEST_STEP_S = 180.0
"""Most seconds of a silence that count as work: in a longer one the agent runs something or waits."""


def work_on(pace: Pace, since: datetime | None, at: datetime, *, is_prompt: bool) -> Pace:
    """Return the pace after the agent, last heard `since` then, was heard `at` that moment.

    A prompt ends the turn before it; what passed until then was the user's time.
    """
    if is_prompt:
        took = pace.worked_s - pace.turn_began_s
        turns = (*pace.turns_s, took)[-_MOST_TURNS:] if took > 0 else pace.turns_s
        return replace(pace, turn_began_s=pace.worked_s, turns_s=turns)
    step_s = (at - since).total_seconds() if since is not None else 0.0
    return replace(pace, worked_s=pace.worked_s + min(max(0.0, step_s), _LONGEST_STEP_S))


_MOST_WINDOWS = 64


class NearLimit(msgspec.Struct, frozen=True):
    """A window that has just come near its limit; `why` is `share` or `rate`."""

    reading: WindowReading
    why: str


class WindowTracks:
    """The windows of one leg, and which of them are near their limits."""

    def __init__(self, wishes: NearLimitWishes) -> None:
        self._wishes = wishes
        self._tracks: dict[tuple[str, str], WindowTrack] = {}
        self._pace = Pace()
        self._heard_at: datetime | None = None
        self._has_left = False

    @property
    def newest(self) -> tuple[WindowReading, ...]:
        """The newest reading of every window, in the order the windows were first read."""
        return tuple(track.reading for track in self._tracks.values())

    def hear_work(self, at: datetime, now: datetime, *, is_prompt: bool) -> None:
        """Note that a record of that moment shows the agent at work, or a prompt to it."""
        if self._heard_at is None or at == self._heard_at or is_later(at, self._heard_at, now):
            self._pace = work_on(self._pace, self._heard_at, at, is_prompt=is_prompt)
            self._heard_at = at

    def follow(self, reading: WindowReading, now: datetime) -> None:
        """Note a reading."""
        key = (reading.window.name, reading.model)
        before = self._tracks.get(key)
        track = follow(before, reading, self._pace.worked_s, now)
        self._note_left(before, track)
        if track is not None and (key in self._tracks or len(self._tracks) < _MOST_WINDOWS):
            self._tracks[key] = track

    def list_near(self) -> list[NearLimit]:
        """Return the windows that have come near their limits since this was last asked."""
        found = []
        for key, track in self._tracks.items():
            why = judge(track, self._pace, self._wishes)
            after = settle(track, is_near=bool(why))
            if track.near_at is None and after.near_at is not None:
                found.append(NearLimit(track.reading, why))
            self._note_left(track, after)
            self._tracks[key] = after
        return found

    def take_relief(self) -> bool:
        """Return whether a window has left its limit since this was last asked, and none is near one."""
        left, self._has_left = self._has_left, False
        return left and all(track.near_at is None for track in self._tracks.values())

    def _note_left(self, before: WindowTrack | None, after: WindowTrack | None) -> None:
        if before is not None and after is not None and before.near_at is not None and after.near_at is None:
            self._has_left = True
