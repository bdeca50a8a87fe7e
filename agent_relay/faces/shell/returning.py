"""Between two turns: a preferred agent whose window has reset is offered again, or has the next turn."""

from collections.abc import Callable
from datetime import datetime

from agent_relay.domain.config import UserConfig
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.system.clock import Clock, SystemClock
from agent_relay.system.glances import find_ledger_trouble, read_resting
from agent_relay.system.local_zone import LocalZone

_AFTER_S = 1.0


class Returning:
    """Knows whom the person chose and whether that agent gave way to a limit.

    `read_config` gives the user's wishes as they are now; `ledger` is the file of who rests until when.
    `clock` is the machine's where none is given.
    """

    def __init__(
        self,
        conversation: Conversation,
        read_config: Callable[[], UserConfig],
        ledger: str,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock or SystemClock()
        self._conversation = conversation
        self._read_config = read_config
        self._ledger = ledger
        self._left = ""

    def note_limit(self, agent: str) -> None:
        """`agent` gave way; the first of several is the one to come back to."""
        self._left = self._left or agent

    def forget(self) -> None:
        """The person chose somebody: nobody is to come back."""
        self._left = ""

    @property
    def goes_on(self) -> bool:
        """Whether the user wants work to go on by itself at the first reset."""
        config = self._read_config()
        return config.resume_at_reset is True and not config.build_quiet_hours().always

    def count_wait(self, moment: str) -> float | None:
        """Seconds until a moment (ISO 8601); `None` where it is none."""
        try:
            at = datetime.fromisoformat(moment)
        except ValueError:
            return None
        return max(0.0, (at - self._clock.now()).total_seconds() + _AFTER_S) if at.tzinfo else None

    def put_off(self, moment: str) -> str:
        """The moment (ISO 8601), or the end of the quiet hours it is in, where work goes on by itself."""
        if self.count_wait(moment) is None or not self.goes_on:
            return moment
        at = datetime.fromisoformat(moment)
        opens = self._read_config().build_quiet_hours().find_next_allowed(at, LocalZone())
        return moment if opens is None or opens == at else opens.isoformat()

    def look(self) -> str:
        """The line to show; empty for none. With `return = "auto"` the agent has the next turn then."""
        agent, wish = self._left, self._read_config().return_
        if not agent or wish == "off" or find_ledger_trouble(self._ledger):
            return ""
        if agent in {str(rest["agent"]) for rest in read_resting(self._ledger)}:
            return ""
        self._left = ""
        if agent == self._conversation.agent:
            return ""
        if wish == "offer":
            return f"→ {agent} is available again: /use {agent}"
        self._conversation.agent = agent
        return f"→ {agent} is available again, and has the next message."
