"""The time, its jumps and the machine's zone; asked for in one place so that tests can set the clock.

The zone has at every moment the offset that counts then, and not only the one of now.
"""

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from agent_relay.domain.values.elapsed import ClockJump
from agent_relay.domain.values.ulid import build_ulid

_TOLERANCE = timedelta(seconds=1)
"""Two clocks are not read at once, and time servers make one run a little faster or slower."""
_MOST_READS = 5
_AT_ONCE_S = 0.01


class Clock(Protocol):
    """What tells the time."""

    def now(self) -> datetime:
        """The moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never runs backwards, and not while the machine sleeps."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """The moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed point; never runs backwards, and not while the machine sleeps."""
        return time.monotonic()


class JumpingClock:
    """A wall clock that is watched: it tells when it moved otherwise than time passed.

    Elapsed time is what the machine was awake for. An agent that was not running did not wait either, and a
    person who sets a clock makes nothing older: whatever counts from a moment moves it by each jump.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._steady_s = _read_both(clock)
        self._read_s = self._steady_s

    def read(self) -> tuple[datetime, ClockJump | None]:
        """The moment (aware, in UTC), and how the clock jumped since it was last read; mostly it did not."""
        now, steady_s = _read_both(self._clock)
        by = now - self._wall - timedelta(seconds=steady_s - self._steady_s)
        since = now - timedelta(seconds=steady_s - self._read_s)
        self._read_s = steady_s
        if abs(by) < _TOLERANCE:
            return now, None
        self._wall, self._steady_s = now, steady_s
        return now, ClockJump(by, since)


def _read_both(clock: Clock) -> tuple[datetime, float]:
    """Both clocks at one moment; a busy machine may do something else between the two."""
    for _ in range(_MOST_READS):
        before_s, now, steady_s = clock.monotonic(), clock.now(), clock.monotonic()
        if steady_s - before_s < _AT_ONCE_S:
            break
    return now, steady_s


def create_ulid(clock: Clock) -> str:
    """A new identifier of 26 characters; sorts by the clock's milliseconds."""
    return build_ulid(max(0, int(clock.now().timestamp() * 1000)), os.urandom(10))


class LocalZone(tzinfo):
    """For days: the one on which clocks change has 23 or 25 hours, and begins with yesterday's offset."""

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        """The machine's offset at the local moment."""
        if dt is None:
            return None
        # `astimezone` takes the other side of an hour that is skipped from Python 3.12 on.
        local = dt.replace(tzinfo=None, microsecond=0)
        return timedelta(seconds=local.replace(tzinfo=UTC).timestamp() - local.timestamp())

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        """Not known, and not needed."""
        del dt
        return None

    def tzname(self, dt: datetime | None, /) -> str | None:
        """What the machine calls the offset at the local moment."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime, /) -> datetime:
        """The local moment; the second one of an hour that comes twice is marked as such."""
        found = dt.replace(tzinfo=UTC).astimezone()
        local = found.replace(tzinfo=self)
        return local if local.utcoffset() == found.utcoffset() else local.replace(fold=1)
