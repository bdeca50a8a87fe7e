"""The time, asked for in one place so that tests can set it."""

import os
import time
from datetime import UTC, datetime
from typing import Protocol

from agent_relay.domain.ulid import build_ulid


class Clock(Protocol):
    """What tells the time."""

    def now(self) -> datetime:
        """The moment, aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point; never runs backwards."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> datetime:
        """The moment, aware, in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Seconds since some fixed point; never runs backwards."""
        return time.monotonic()


def create_ulid(clock: Clock) -> str:
    """A new identifier of 26 characters; sorts by the clock's milliseconds."""
    return build_ulid(max(0, int(clock.now().timestamp() * 1000)), os.urandom(10))
