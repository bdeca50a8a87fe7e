"""The time, jumps of the clock, and the machine's time zone, in one place so that tests can set the clock.

`LocalZone` has the offset in force at each moment, not only the current one.
"""

import os
import time
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING, Protocol

from agent_relay.domain.names import build_ulid

if TYPE_CHECKING:
    from agent_relay.domain.values import ClockJump

_TOLERANCE = timedelta(seconds=1)
"""Two clocks are never read at the same instant, and time servers make one run a little faster or slower."""
_MOST_READS = 5
_AT_ONCE_S = 0.01


class Clock(Protocol):
    """A source of the current time."""

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since some fixed point; they never go back, and do not count the machine's sleep."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """Return the current time, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since some fixed point; they never go back, and do not count the machine's sleep."""
        return time.monotonic()


class JumpingClock:
    """A wall clock that reports its jumps: when it moved by other than the time that passed.

    Elapsed time is the time the machine was awake. An agent that was not running did not wait either, and
    setting the clock makes nothing older: whatever counts from a moment shifts that moment by each jump.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wall, self._steady_s = _read_both(clock)
        self._read_s = self._steady_s

    def read(self) -> "tuple[datetime, ClockJump | None]":
        """Return the time (aware, in UTC) and how the clock jumped since the last read; mostly `None`."""
        from agent_relay.domain.values import ClockJump  # commands that only tell the time do without

        now, steady_s = _read_both(self._clock)
        by = now - self._wall - timedelta(seconds=steady_s - self._steady_s)
        since = now - timedelta(seconds=steady_s - self._read_s)
        self._read_s = steady_s
        if abs(by) < _TOLERANCE:
            return now, None
        self._wall, self._steady_s = now, steady_s
        return now, ClockJump(by, since)


def _read_both(clock: Clock) -> tuple[datetime, float]:
    """Read both clocks at one moment; try again if the machine did something else between the two."""
    for _ in range(_MOST_READS):
        before_s, now, steady_s = clock.monotonic(), clock.now(), clock.monotonic()
        if steady_s - before_s < _AT_ONCE_S:
            break
    return now, steady_s


def read_boot_moment() -> datetime:
    """Return when this machine booted, aware, in UTC; time spent asleep counts."""
    return datetime.now(UTC) - timedelta(seconds=time.clock_gettime(time.CLOCK_BOOTTIME))


def create_ulid(clock: Clock) -> str:
    """Create an identifier of 26 characters; identifiers sort by the clock's milliseconds."""
    return build_ulid(max(0, int(clock.now().timestamp() * 1000)), os.urandom(10))


class LocalZone(tzinfo):
    """The machine's time zone, for days: one on which clocks change has 23 or 25 hours.

    Such a day begins with the offset of the day before.
    """

    def utcoffset(self, dt: datetime | None, /) -> timedelta | None:
        """Return the machine's offset at the local time `dt`."""
        if dt is None:
            return None
        # `astimezone` takes the other side of an hour that is skipped from Python 3.12 on.
        local = dt.replace(tzinfo=None, microsecond=0)
        return timedelta(seconds=local.replace(tzinfo=UTC).timestamp() - local.timestamp())

    def dst(self, dt: datetime | None, /) -> timedelta | None:
        """Return `None`: it is not known, and not needed."""
        del dt
        return None

    def tzname(self, dt: datetime | None, /) -> str | None:
        """Return the machine's name for the offset at the local time `dt`."""
        return None if dt is None else dt.replace(tzinfo=None).astimezone().tzname()

    def fromutc(self, dt: datetime, /) -> datetime:
        """Return the local time; `fold` is 1 for the second one of an hour that occurs twice."""
        found = dt.replace(tzinfo=UTC).astimezone()
        local = found.replace(tzinfo=self)
        return local if local.utcoffset() == found.utcoffset() else local.replace(fold=1)
