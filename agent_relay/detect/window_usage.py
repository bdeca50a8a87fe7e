"""Hold, parse and render how much of each agent's usage windows is used: as JSON values, and for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import msgspec

from agent_relay.domain.limits import FULL_PERCENT, FullWindow
from agent_relay.domain.moments import parse_moment, render_moment
from agent_relay.domain.text.names import describe_window, name_window
from agent_relay.domain.values import is_later

if TYPE_CHECKING:
    from agent_relay.detect.window_tracks import WindowReading

_MOST_AGENTS = 64
_MOST_WINDOWS = 16
_NO_PERCENTAGE = 1000


class WindowUsage(msgspec.Struct, frozen=True):
    """The last reading an agent reported of one usage window; `minutes` is how long that is, 0 if unknown.

    `model` is the one it is of, empty for the whole account; `source` is which of the agent's records said so
    and `read_at` when.
    """

    name: str
    minutes: int
    used_percent: float
    resets_at: datetime
    model: str = ""
    source: str = ""
    read_at: datetime | None = None


class LastWindows:
    """The last usage windows by agent, as its legs read them. Use it from the event loop only."""

    def __init__(self) -> None:
        self._readings: dict[str, dict[tuple[str, str], WindowReading]] = {}

    def note(self, agent: str, readings: "Sequence[WindowReading]", now: datetime) -> bool:
        """Record the readings of one leg of `agent`; return whether anything is new.

        Of two readings of a window the newer one counts.
        """
        known = self._readings.setdefault(agent, {}) if readings else {}
        is_news = False
        for reading in readings:
            key = (reading.window.name, reading.model)
            before = known.get(key)
            if before is None or before.at == reading.at or is_later(reading.at, before.at, now):
                is_news = is_news or before != reading
                known[key] = reading
        return is_news

    def list_known(self, now: datetime) -> dict[str, tuple[WindowUsage, ...]]:
        """Return the windows that have not begun anew, by agent; agents without any are left out."""
        found = {
            agent: list_current_windows([describe_reading(one) for one in known.values()], now)
            for agent, known in self._readings.items()
        }
        return {agent: tuple(windows) for agent, windows in found.items() if windows}


def describe_reading(reading: "WindowReading") -> WindowUsage:
    """Return the reading as faces show it."""
    return WindowUsage(
        reading.window.name,
        reading.minutes,
        reading.used,
        reading.resets_at,
        reading.model,
        reading.window.source,
        reading.at,
    )


def list_rows(windows: Mapping[str, Sequence[WindowUsage]]) -> list[dict[str, object]]:
    """Return windows by agent as the rows of `store.usage_windows`."""
    return [
        {
            "agent": agent,
            "model": one.model,
            "name": one.name,
            "resets_at": one.resets_at.isoformat(),
            "source": one.source,
            "read_at": one.read_at.isoformat() if one.read_at is not None else "",
            "minutes": one.minutes,
            "used_percent": one.used_percent,
        }
        for agent, found in windows.items()
        for one in found
    ]


def find_full(rows: Sequence[Mapping[str, object]]) -> dict[str, FullWindow]:
    """Return by agent the full window that begins anew last, from rows as `list_rows` makes them."""
    found: dict[str, FullWindow] = {}
    for row in rows:
        until = parse_moment(row["resets_at"])
        used, minutes = row["used_percent"], row["minutes"]
        is_full = isinstance(used, int | float) and used >= FULL_PERCENT and not row["model"]
        if until is None or not is_full:
            continue
        known = found.get(str(row["agent"]))
        if known is None or known.until < until:
            name = describe_window(str(row["name"]), minutes if isinstance(minutes, int) else 0)
            found[str(row["agent"])] = FullWindow(name, until)
    return found


def render_windows(windows: Mapping[str, Sequence[WindowUsage]]) -> dict[str, object]:
    """Return windows by agent as JSON values."""
    return {
        agent: [[one.name, one.minutes, one.used_percent, one.resets_at.isoformat()] for one in found]
        for agent, found in windows.items()
    }


def parse_windows(value: object) -> dict[str, tuple[WindowUsage, ...]]:
    """Return windows by agent from JSON values; invalid ones are skipped: a status line must not fail."""
    if not isinstance(value, dict):
        return {}
    found = {
        agent: tuple(one for one in map(_parse, rows[:_MOST_WINDOWS]) if one is not None)
        for agent, rows in list(value.items())[:_MOST_AGENTS]
        if isinstance(agent, str) and isinstance(rows, list)
    }
    return {agent: windows for agent, windows in found.items() if windows}


def list_current_windows(windows: Sequence[WindowUsage], now: datetime) -> list[WindowUsage]:
    """Return the windows that have not begun anew since, shortest first: others are unknown."""
    return sorted((one for one in windows if one.resets_at > now), key=lambda one: (one.minutes, one.name))


def render_window(window: WindowUsage, now: datetime, zone: tzinfo | None, *, is_long: bool) -> str:
    """Render `5 h 42 %`, with its reset if `is_long`; without a `zone` in the machine's own."""
    reset = f" (resets {render_moment(window.resets_at, now, zone)})" if is_long else ""
    return f"{name_window(window.name, window.minutes, window.model)} {round(window.used_percent)} %{reset}"


def _parse(value: object) -> WindowUsage | None:
    match value:
        case [str(name), int(minutes), int() | float() as used, str(resets_at)]:
            moment = parse_moment(resets_at)
            return WindowUsage(name, minutes, used, moment) if moment is not None and _is_sane(used) else None
        case _:
            return None


def _is_sane(used: float) -> bool:
    """Return whether that can be a percentage; a provider may count somewhat above a hundred."""
    return 0 <= used < _NO_PERCENTAGE
