"""Elapsed time and order of moments by a wall clock that may be set, on machines that sleep."""

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
    """A moment something began at: `at` (aware) for comparing with moments noted later.

    `counts_from` is what is subtracted from a later now, both by the wall clock as it was set since.
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
    """Return the start of something that begins at `at`, by the wall clock as it is set now."""
    return Start(at, at)


def is_later(at: datetime, than: datetime, now: datetime) -> bool:
    """Return whether `at` is later than `than`, by a clock that may have been set back since `than`.

    If `than` is in the future, it was noted before the clock was set back: any moment up to now is later.
    """
    return at <= now if than > now else at > than


def has_passed(span: timedelta, since: datetime, now: datetime) -> bool:
    """Return whether `span` has passed since a moment noted by a clock that may have been set since.

    A moment that is further ahead than `span` was noted by another time: nothing is to wait until it comes.
    """
    return abs(now - since) >= span
