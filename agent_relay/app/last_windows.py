"""What each agent last said of its usage windows, whichever leg it said it in; the account is the same."""

from datetime import datetime
from typing import TYPE_CHECKING

from agent_relay.logic.elapsed import is_later
from agent_relay.logic.usage_windows import WindowRead, list_open

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agent_relay.logic.detector.windows import Reading


class LastWindows:
    """Outlives the legs, not the daemon: agents say it again. Use it from the event loop only."""

    def __init__(self) -> None:
        self._readings: dict[str, dict[str, Reading]] = {}

    def note(self, agent: str, readings: "Sequence[Reading]", now: datetime) -> None:
        """The readings of one leg of `agent` are known; of two of a window the newer one counts."""
        known = self._readings.setdefault(agent, {}) if readings else {}
        for reading in readings:
            before = known.get(reading.window.name)
            if before is None or before.at == reading.at or is_later(reading.at, before.at, now):
                known[reading.window.name] = reading

    def list_known(self, now: datetime) -> dict[str, tuple[WindowRead, ...]]:
        """By agent, the windows that have not begun anew; agents of which nothing is known are left out."""
        found = {agent: list_open(_read(known), now) for agent, known in self._readings.items()}
        return {agent: tuple(windows) for agent, windows in found.items() if windows}


def _read(known: "dict[str, Reading]") -> list[WindowRead]:
    return [WindowRead(one.window.name, one.minutes, one.used, one.resets_at) for one in known.values()]
