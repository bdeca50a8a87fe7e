"""What legs last showed, for packets of those whose own record has no word of what they were asked."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent_relay.logic.readiness import AgentState

_LEGS = 64
_LINES = 60
_OWN_STATES = ("ready", "busy", "asking")


@dataclass(slots=True)
class Seen:
    """What an agent last showed as its own screen."""

    screen: str = ""

    def see(self, lines: Sequence[str], state: AgentState) -> None:
        """Take note of a screen. What stands there once the agent has left is not its own any more."""
        shown = [line for line in lines if line.strip()]
        if shown and (state in _OWN_STATES or not self.screen):
            self.screen = "\n".join(shown[-_LINES:])


NOTHING_SEEN = Seen()


class LastSeen:
    """By leg. Outlives the legs, not the daemon; the newest few are kept."""

    def __init__(self) -> None:
        self._seen: dict[str, Seen] = {}

    def note(self, leg_id: str, seen: Seen) -> None:
        """Keep what was seen of the leg so far, and forget the oldest legs beyond the limit."""
        self._seen[leg_id] = seen
        while len(self._seen) > _LEGS:
            del self._seen[next(iter(self._seen))]

    def get(self, leg_id: str) -> Seen:
        """Return what was seen of the leg: nothing where another daemon saw it."""
        return self._seen.get(leg_id, NOTHING_SEEN)
