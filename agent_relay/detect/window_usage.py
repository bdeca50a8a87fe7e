"""Parse and render how much of each agent's usage windows is used: as JSON values, and for people."""

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

import msgspec

from agent_relay.domain.moments import parse_moment, render_moment
from agent_relay.domain.text.names import name_window

_MOST_AGENTS = 64
_MOST_WINDOWS = 16
_NO_PERCENTAGE = 1000


class WindowUsage(msgspec.Struct, frozen=True):
    """What an agent last said of one usage window; `minutes` is how long that is, 0 if unknown."""

    name: str
    minutes: int
    used_percent: float
    resets_at: datetime


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
    return f"{name_window(window.name, window.minutes)} {round(window.used_percent)} %{reset}"


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
