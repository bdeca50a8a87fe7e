"""What one leg's agent is doing, by its newest screen and by what it says of itself."""

from datetime import datetime

from agent_relay.app.senses import Senses
from agent_relay.domain.session import Leg
from agent_relay.domain.signal import Record, Source
from agent_relay.logic.detector.input_line import InputState, read_input
from agent_relay.logic.elapsed import Jump, start_at
from agent_relay.logic.readiness import AgentState, believe_state, read_state
from agent_relay.logic.screen import Screen

_NEW_S = 10.0
"""How long a leg that announces its state is not believed by its screen alone; measured: 0.4 s."""


class Sight:
    """`state` is the last one read, `input` what the line people type into holds, by the newest `screen`."""

    def __init__(self, leg: Leg, senses: Senses) -> None:
        self.state: AgentState = "starting"
        self.input: InputState = "hidden"
        self.screen: Screen | None = None
        self.moment = 0
        """Counts how often the agent was said to work, whatever its screen showed."""
        self._seen_at = 0
        self._began = start_at(leg.starting_at)
        self._rules = senses.rules
        self._state_record: dict[str, object] | None = None
        self._had_turns = leg.was_ready or leg.was_busy

    def hear(self, record: Record) -> None:
        """What the agent keeps of its own state in a file is the newest such record."""
        if record.source is Source.STATE_FILE:
            self._state_record = dict(record.data)

    def shift(self, jump: Jump) -> None:
        """The wall clock jumped: the leg is no newer for it."""
        self._began = self._began.after(jump)

    def see(self, screen: Screen, moment: int) -> bool:
        """Whether `screen`, asked for at `moment`, shows something else than the one before."""
        before, self.screen, self._seen_at = self.screen, screen, moment
        return before is None or (before.rows, before.title) != (screen.rows, screen.title)

    def say_working(self) -> bool:
        """Whether the agent was not known to work; it is now, until a newer screen shows something else."""
        if self.state == "busy":
            return False
        self.state = "busy"
        self.moment += 1
        return True

    def get_doubted_s(self, now: datetime) -> float:
        """How long the leg is still too new to be believed by its screen alone."""
        return max(0.0, _NEW_S - self._began.get_elapsed(now).total_seconds())

    def read(self, *, now: datetime, was_prompted: bool) -> AgentState | None:
        """The state where it is known and another one than before.

        `was_prompted` is whether the leg took a prompt. A screen that is older than the agent's work does not
        say that it waits for some.
        """
        if self.screen is None:
            return None
        is_new = self.get_doubted_s(now) > 0
        state = read_state(self._rules, self.screen, state_record=self._state_record, is_new=is_new)
        state = believe_state(self._rules, state, had_turns=self._had_turns or was_prompted)
        self._had_turns = self._had_turns or state == "ready"
        self.input = read_input(self._rules, self.screen)
        is_late = state == "ready" and self._seen_at < self.moment
        if is_late or state in ("unknown", self.state):
            return None
        self.state = state
        return state
