"""Read what an agent's records say of its use: how full its usage windows are, and its context.

Windows give exact resets for limits worded by the minute, and near limits.
"""

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime, timedelta, tzinfo

from agent_relay.detect._resets import find_reset
from agent_relay.detect.window_tracks import (
    MOST_PERCENT,
    NearLimit,
    WindowReading,
    WindowTracks,
)
from agent_relay.domain.documents.record_matching import compile_pattern, find_value, is_meant, open_envelope
from agent_relay.domain.documents.rules import ContextRule, ContextRules, ModelWindows, UsageWindow
from agent_relay.domain.limits import DATED, FULL_PERCENT, NEAR_BY_ADAPTER, NearLimitWishes, Reading, Record
from agent_relay.domain.values import ClockJump, start_at

# A clock time is a window's reset cut to the minute; providers' own clocks add a little.
_SAME_RESET = timedelta(minutes=2)
_LONGEST_MODEL = 80
_MOST_MINUTES = 10_000_000


class UsageWindows:
    """The newest reading of each usage window in a leg, and which windows are near their limits."""

    def __init__(
        self, windows: Sequence[UsageWindow], zone: tzinfo, wishes: NearLimitWishes = NEAR_BY_ADAPTER
    ) -> None:
        self._windows = tuple(windows)
        self._zone = zone
        self._tracks = WindowTracks(wishes)

    def hear(self, record: Record, at: datetime, now: datetime) -> tuple[WindowReading, ...]:
        """Return the readings in this record, written at `at`."""
        found = tuple(
            reading
            for window in self._windows
            if window.source is record.source and is_meant(window.where, record.data)
            for reading in self._read(window, record, at)
        )
        for reading in found:
            self._tracks.follow(reading, now)
        return found

    def hear_work(self, at: datetime, means: Collection[str], now: datetime) -> None:
        """Note a record that shows the agent at work, or a prompt (`Progress.means`)."""
        if means:
            self._tracks.hear_work(at, now, is_prompt="prompt" in means)

    def list_near(self) -> list[NearLimit]:
        """Return the windows that have come near their limits since this was last asked."""
        return self._tracks.list_near()

    def take_relief(self) -> bool:
        """Return whether a window has left its limit since this was last asked, and none is near one."""
        return self._tracks.take_relief()

    @property
    def newest(self) -> tuple[WindowReading, ...]:
        """The newest reading of every window, in the order the windows were first read."""
        return self._tracks.newest

    def find_exact(
        self, name: str, coarse: datetime | None, at: datetime, *, model: str = ""
    ) -> datetime | None:
        """Return the exact reset of a limit of window `name` (`*` any), or `None`.

        `coarse` is the reset its text named. If it named none, only a full window that has yet to reset will
        do, and the one that ends last: a limit holds until every full window has reset. A window of another
        model than `model` does not count then.
        """
        readings = [
            reading
            for reading in self.newest
            if name in {"*", reading.window.name} and reading.resets_at > at
        ]
        if coarse is None:
            full = [
                reading.resets_at
                for reading in readings
                if reading.used >= FULL_PERCENT and reading.model in {"", model}
            ]
            return max(full, default=None)
        same = [reading.resets_at for reading in readings if abs(reading.resets_at - coarse) <= _SAME_RESET]
        return min(same, key=lambda moment: abs(moment - coarse), default=None)

    def _read(self, window: UsageWindow, record: Record, at: datetime) -> tuple[WindowReading, ...]:
        used = find_value(record.data, window.used) if window.used else window.tells_percent
        resets_at = find_reset(find_value(record.data, window.reset), window.forms, at=at, zone=self._zone)
        if isinstance(used, bool) or not isinstance(used, (int, float)) or resets_at is None:
            return ()
        # A whole number of any length can be compared, but not divided.
        if not 0 <= used < (MOST_PERCENT * window.full / 100 if window.used else MOST_PERCENT):
            return ()
        percent = 100 * used / window.full if window.used else float(used)
        model = _read_model(window, record)
        return (WindowReading(window, percent, resets_at, at, _read_minutes(window, record), model),)


def _read_model(window: UsageWindow, record: Record) -> str:
    """Return the model the window is of; empty if it is the whole account's."""
    named = find_value(record.data, window.model) if window.model else None
    return named[:_LONGEST_MODEL] if isinstance(named, str) and named else window.of_model


def _read_minutes(window: UsageWindow, record: Record) -> int:
    """Return how long the window is by the record, else by the adapter; 0 if neither knows."""
    said = find_value(record.data, window.minutes) if window.minutes else None
    is_length = isinstance(said, int) and not isinstance(said, bool) and 0 < said < _MOST_MINUTES
    return said if is_length and isinstance(said, int) else window.lasts_minutes


_MOST_TOKENS = 1_000_000_000
_MOST_MODELS = 20_000
_MOST_TALKS = 1_000


class ContextGauge:
    """The newest reading of one leg. `started_at` (aware) is the leg's start: older records are history."""

    def __init__(self, rules: ContextRules, *, started_at: datetime) -> None:
        self._rules = rules
        self._newest = start_at(started_at)
        self._window = 0
        self._model = ""
        self._rooms: dict[str, int] = {}
        self._sides: set[object] = set()

    def shift(self, jump: ClockJump) -> None:
        """Adjust to a jump of the wall clock: if it was set back, later readings still count as new."""
        self._newest = self._newest.after(jump)

    def hear(self, record: Record, *, now: datetime) -> Reading | None:
        """Return the record's reading of the context if it is news; `now` dates records without a time.

        Sources report at different speeds: a reading that is older than the newest one is no news.
        """
        # One moment to come, by a clock that was set back or a forged record, must not outdate all others.
        at = min(record.at, now) if record.at else None if record.source in DATED else now
        if at is None or at < self._newest.at:
            return None
        record = open_envelope(record)
        self._note_others(record)
        for rule in self._rules.readings:
            if rule.source is record.source and is_meant(rule.where, record.data):
                used = self._find_used(rule, record.data)
                if used is not None:
                    self._newest = start_at(at)
                    return Reading(used, self._find_room(rule, record.data), at, self._model)
        return None

    def _note_others(self, record: Record) -> None:
        """Note the windows of models, and the conversations that are not the user's."""
        for models in self._rules.models:
            if models.source is record.source and is_meant(models.where, record.data):
                self._rooms |= _read_rooms(models, record.data)
        for side in self._rules.sides:
            if side.source is record.source and is_meant(side.where, record.data):
                talk = find_value(record.data, side.talk)
                if isinstance(talk, str) and len(self._sides) < _MOST_TALKS:
                    self._sides.add(talk)

    def _find_used(self, rule: ContextRule, data: object) -> int | None:
        """Return the tokens of the user's own conversation; `None` if the record has none."""
        talk = find_value(data, rule.talk) if rule.talk else None
        if isinstance(talk, str) and talk in self._sides:
            return None
        counts = [count for path in rule.used if (count := _read_count(find_value(data, path))) is not None]
        return sum(counts) if counts else None

    def _find_room(self, rule: ContextRule, data: object) -> int:
        """Return the room of the record's model; if it names none, of the one named before it."""
        model = _join_name(rule.model, data)
        if model and model != self._model:
            self._model, self._window = model, 0
        window = _read_count(find_value(data, rule.window)) if rule.window else None
        if window:
            self._window = window
        known = self._window or self._rooms.get(self._model, 0) or self._find_known()
        return max(0, int(known * self._rules.usable_percent / 100) - self._rules.reserve_tokens)

    def _find_known(self) -> int:
        return next(
            (one.window for one in self._rules.known if compile_pattern(one.pattern).search(self._model)), 0
        )


def _read_rooms(models: ModelWindows, data: object) -> dict[str, int]:
    """Return what each listed model has left for its conversation, by its name."""
    rooms: dict[str, int] = {}
    for entry in _iter_at(data, models.models.split("/")):
        name, window = _join_name(models.name, entry), _read_count(find_value(entry, models.window))
        if name and window and len(rooms) < _MOST_MODELS:
            reserve = _read_count(find_value(entry, models.reserve)) if models.reserve else None
            rooms[name] = max(1, window - min(reserve or 0, models.most_reserve))
    return rooms


def _iter_at(data: object, steps: Sequence[str]) -> Iterator[object]:
    """Yield everything the path leads to; `*` steps into every value of an object or list."""
    if not steps:
        yield data
        return
    first, rest = steps[0], steps[1:]
    if first != "*":
        yield from _iter_at(find_value(data, first), rest)
    elif isinstance(data, dict):
        for value in data.values():
            yield from _iter_at(value, rest)
    elif isinstance(data, list):
        for value in data:
            yield from _iter_at(value, rest)


def _join_name(paths: Sequence[str], data: object) -> str:
    """Return the parts of a name joined by `/`; empty if one is missing."""
    parts = [find_value(data, path) for path in paths]
    words = [part for part in parts if isinstance(part, str) and part]
    return "/".join(words) if len(words) == len(parts) else ""


def _read_count(value: object) -> int | None:
    """Return a plausible count of tokens; `None` for anything else."""
    is_count = isinstance(value, int) and not isinstance(value, bool)
    return value if is_count and isinstance(value, int) and 0 <= value <= _MOST_TOKENS else None
