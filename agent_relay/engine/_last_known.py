"""The last screen of each leg and the last usage windows of each agent, kept beyond the legs.

Kept in memory as long as the daemon. Screens are for packets of agents whose own record has no word of what
they were asked; windows belong to the account, whichever leg reported them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_relay.detect.screen_state import AgentState
from agent_relay.detect.window_usage import WindowUsage, list_current_windows
from agent_relay.domain.values.elapsed import is_later

if TYPE_CHECKING:
    from agent_relay.detect.usage_windows import WindowReading


_LEGS = 64
_LINES = 60
_OWN_STATES = ("ready", "busy", "asking")


@dataclass(slots=True)
class LastScreen:
    """What an agent last showed as its own screen."""

    screen: str = ""

    def see(self, lines: Sequence[str], state: AgentState) -> None:
        """Take note of a screen. What stands there once the agent has left is not its own any more."""
        shown = [line for line in lines if line.strip()]
        if shown and (state in _OWN_STATES or not self.screen):
            self.screen = "\n".join(shown[-_LINES:])


NO_SCREEN = LastScreen()


class LastScreens:
    """By leg. Outlives the legs, not the daemon; the newest few are kept."""

    def __init__(self) -> None:
        self._seen: dict[str, LastScreen] = {}

    def note(self, leg_id: str, seen: LastScreen) -> None:
        """Keep what was seen of the leg so far, and forget the oldest legs beyond the limit."""
        self._seen[leg_id] = seen
        while len(self._seen) > _LEGS:
            del self._seen[next(iter(self._seen))]

    def get(self, leg_id: str) -> LastScreen:
        """Return what was seen of the leg: nothing where another daemon saw it."""
        return self._seen.get(leg_id, NO_SCREEN)


class LastWindows:
    """Outlives the legs, not the daemon: agents say it again. Use it from the event loop only."""

    def __init__(self) -> None:
        self._readings: dict[str, dict[str, WindowReading]] = {}

    def note(self, agent: str, readings: "Sequence[WindowReading]", now: datetime) -> None:
        """The readings of one leg of `agent` are known; of two of a window the newer one counts."""
        known = self._readings.setdefault(agent, {}) if readings else {}
        for reading in readings:
            before = known.get(reading.window.name)
            if before is None or before.at == reading.at or is_later(reading.at, before.at, now):
                known[reading.window.name] = reading

    def list_known(self, now: datetime) -> dict[str, tuple[WindowUsage, ...]]:
        """By agent, the windows that have not begun anew; agents of which nothing is known are left out."""
        found = {agent: list_current_windows(_read(known), now) for agent, known in self._readings.items()}
        return {agent: tuple(windows) for agent, windows in found.items() if windows}


def _read(known: "dict[str, WindowReading]") -> list[WindowUsage]:
    return [WindowUsage(one.window.name, one.minutes, one.used, one.resets_at) for one in known.values()]
