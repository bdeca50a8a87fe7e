"""Track the usage windows an agent reports: exact resets for limits worded by the minute, and near limits."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from agent_relay.detect._resets import find_reset
from agent_relay.domain.documents.record_matching import find_value, is_meant
from agent_relay.domain.documents.rules import UsageWindow
from agent_relay.domain.limits import Record

FULL_PERCENT = 100.0
# A clock time is a window's reset cut to the minute; providers' own clocks add a little.
_SAME_RESET = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class WindowReading:
    """One reading of a usage window: percent used and when it starts anew; 0 minutes are unknown."""

    window: UsageWindow
    used: float
    resets_at: datetime
    at: datetime
    minutes: int = 0


class UsageWindows:
    """The newest reading of each usage window in a leg."""

    def __init__(self, windows: Sequence[UsageWindow], zone: tzinfo) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._readings: dict[str, WindowReading] = {}

    def hear(self, record: Record, at: datetime) -> tuple[WindowReading, ...]:
        """Return the readings this record brought."""
        return tuple(
            reading
            for window in self._windows
            if window.source is record.source and is_meant(window.where, record.data)
            for reading in self._read(window, record, at)
        )

    @property
    def newest(self) -> tuple[WindowReading, ...]:
        """The newest reading of every window, in the order the windows were first read."""
        return tuple(self._readings.values())

    def find_exact(self, name: str, coarse: datetime | None, at: datetime) -> datetime | None:
        """Return the exact reset of a limit of window `name` (`*` any), or `None`.

        `coarse` is the reset its text named. If it named none, only a full window that has yet to reset will
        do, and the one that ends last: a limit holds until every full window has reset.
        """
        readings = [
            reading
            for reading in self._readings.values()
            if name in {"*", reading.window.name} and reading.resets_at > at
        ]
        if coarse is None:
            full = [reading.resets_at for reading in readings if reading.used >= FULL_PERCENT]
            return max(full, default=None)
        same = [reading.resets_at for reading in readings if abs(reading.resets_at - coarse) <= _SAME_RESET]
        return min(same, key=lambda moment: abs(moment - coarse), default=None)

    def _read(self, window: UsageWindow, record: Record, at: datetime) -> tuple[WindowReading, ...]:
        used = find_value(record.data, window.used)
        resets_at = find_reset(find_value(record.data, window.reset), window.forms, at=at, zone=self._zone)
        if isinstance(used, bool) or not isinstance(used, (int, float)) or resets_at is None:
            return ()
        reading = WindowReading(
            window, 100 * used / window.full, resets_at, at, _read_minutes(window, record)
        )
        self._readings[window.name] = reading
        return (reading,)


def _read_minutes(window: UsageWindow, record: Record) -> int:
    """Return how long the window is by the record, else by the adapter; 0 if neither knows."""
    said = find_value(record.data, window.minutes) if window.minutes else None
    is_length = isinstance(said, int) and not isinstance(said, bool) and said > 0
    return said if is_length and isinstance(said, int) else window.lasts_minutes
