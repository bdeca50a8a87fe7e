"""Elapsed time and order of moments by a wall clock that is set while machines sleep."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class ClockJump:
    """The wall clock moved by `by` more than time passed for the waking machine: it slept, or was set.

    `since` (aware) is a moment by the new time; nothing was written between it and the jump.
    """

    by: timedelta
    since: datetime

    @property
    def is_back(self) -> bool:
        """Whether the clock was set back, so that newer moments seem older."""
        return self.by < timedelta(0)


@dataclass(frozen=True, slots=True)
class Start:
    """A moment something began at: `at` (aware) for comparing with moments told later.

    `counts_from` is what is subtracted from a later now, both by the wall clock as it is set since.
    """

    at: datetime
    counts_from: datetime

    def after(self, jump: ClockJump) -> "Start":
        """Return the same moment, seen after a jump of the clock."""
        at = min(self.at, jump.since) if jump.is_back else self.at
        return replace(self, at=at, counts_from=self.counts_from + jump.by)

    def get_elapsed(self, now: datetime) -> timedelta:
        """Return how long it has lasted while the machine was awake; never less than nothing."""
        return max(timedelta(0), now - self.counts_from)


def start_at(at: datetime) -> Start:
    """Return what begins at `at`, a moment of the wall clock as it is set now."""
    return Start(at, at)


def is_later(at: datetime, than: datetime, now: datetime) -> bool:
    """Return whether `at` is later than a moment told before, by a clock that may have been set back since.

    A moment that is yet to come was told before that; what is told after it is not later than now.
    """
    return at <= now if than > now else at > than


def has_passed(span: timedelta, since: datetime, now: datetime) -> bool:
    """Return whether `span` has passed since a moment told by a clock that may have been set since.

    What lies further ahead than that was told by another time: nothing is to wait until it comes.
    """
    return abs(now - since) >= span
