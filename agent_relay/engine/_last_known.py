"""The last screen of each leg and the last usage windows of each agent, kept beyond the legs.

Kept in memory while the daemon runs. Screens go into packets of agents whose own records do not hold their
prompts; windows belong to the account, whichever leg reported them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from agent_relay.detect.screen_state import AgentState
from agent_relay.detect.window_usage import WindowUsage, list_current_windows
from agent_relay.domain.values import is_later

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
        """Record the screen if it is in a state of the agent's own, or if none was recorded yet.

        What it shows after the agent has left is not the agent's any more.
        """
        shown = [line for line in lines if line.strip()]
        if shown and (state in _OWN_STATES or not self.screen):
            self.screen = "\n".join(shown[-_LINES:])


NO_SCREEN = LastScreen()


class LastScreens:
    """The last screens by leg. They outlive the legs, not the daemon; the newest 64 are kept."""

    def __init__(self) -> None:
        self._seen: dict[str, LastScreen] = {}

    def note(self, leg_id: str, seen: LastScreen) -> None:
        """Keep the last screen of the leg, and forget the oldest legs beyond the limit."""
        self._seen[leg_id] = seen
        while len(self._seen) > _LEGS:
            del self._seen[next(iter(self._seen))]

    def get(self, leg_id: str) -> LastScreen:
        """Return the last screen of the leg; an empty one if another daemon saw it."""
        return self._seen.get(leg_id, NO_SCREEN)


class LastWindows:
    """The last usage windows by agent. Use it from the event loop only.

    They outlive the legs, not the daemon: agents report them again.
    """

    def __init__(self) -> None:
        self._readings: dict[str, dict[str, WindowReading]] = {}

    def note(self, agent: str, readings: "Sequence[WindowReading]", now: datetime) -> None:
        """Record the readings of one leg of `agent`; of two readings of a window the newer one counts."""
        known = self._readings.setdefault(agent, {}) if readings else {}
        for reading in readings:
            before = known.get(reading.window.name)
            if before is None or before.at == reading.at or is_later(reading.at, before.at, now):
                known[reading.window.name] = reading

    def list_known(self, now: datetime) -> dict[str, tuple[WindowUsage, ...]]:
        """Return the windows that have not begun anew, by agent; agents without any are left out."""
        found = {agent: list_current_windows(_read(known), now) for agent, known in self._readings.items()}
        return {agent: tuple(windows) for agent, windows in found.items() if windows}


def _read(known: "dict[str, WindowReading]") -> list[WindowUsage]:
    return [WindowUsage(one.window.name, one.minutes, one.used, one.resets_at) for one in known.values()]
