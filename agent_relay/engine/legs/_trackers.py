"""Track one leg for its monitor: the agent's state, its context, and the signals reported."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Protocol

from agent_relay.detect.context_gauge import ContextGauge
from agent_relay.detect.screen_state import AgentState, InputState, believe_state, read_input, read_state
from agent_relay.domain.documents.adapter import SourceSpec, StreamRule
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.inputs import ContextFilled, Input
from agent_relay.domain.limits import NO_WISHES, ContextWishes, Level, Reading, Record, Signal, Source
from agent_relay.domain.screen import Screen
from agent_relay.domain.session import Leg
from agent_relay.domain.values import ClockJump, start_at
from agent_relay.session.decision import Outcome
from agent_relay.session.usage_limits import find_level


@dataclass(frozen=True, slots=True)
class MonitorConfig:
    """The rules of the leg's agent, and what is known and wanted of this leg.

    `known` are (rule, text, until, decides) of signals already in the journal: a new daemon reads old records
    again. `wishes` are the marks of the leg's context; none is reported while they are off. `says` are what
    the records of a headless leg's output mean.
    """

    rules: Rules
    sources: Sequence[SourceSpec]
    zone: tzinfo
    patience_s: float
    known: frozenset[tuple[str, str, str, bool]] = frozenset()
    wishes: ContextWishes = NO_WISHES
    says: Sequence[StreamRule] = ()

    def reads(self, source: Source) -> bool:
        """Tell whether the agent's adapter names such a source."""
        return any(spec.role == source for spec in self.sources)


class LegListener(Protocol):
    """Hears what the monitors of a session's legs find: their supervisor."""

    def report(self, leg: Leg, happened: Input | Outcome) -> None:
        """Take what happened to the leg."""
        ...

    def note_change(self, leg_id: str) -> None:
        """Note that the leg's records were read or its screen changed."""
        ...

    def note_names(self, leg_id: str, names: Mapping[str, str]) -> None:
        """Note what the agent calls its own session now."""
        ...


_NEW_S = 10.0
"""How long the screen alone is not believed for a leg that announces its state; measured: 0.4 s."""


class KnownSignals:
    """Finds signals not reported yet; `known` are (rule, redacted text, until, decides)."""

    def __init__(self, known: Iterable[tuple[str, str, str, bool]]) -> None:
        self._known = set(known)

    def list_new(self, signals: Iterable[Signal]) -> list[Signal]:
        """Return the signals not reported yet, their evidence redacted; they are known from now on."""
        # Most legs begin without one, and the rules take long to load.
        from agent_relay.redact.text import redact_text

        found = []
        for signal in signals:
            until = signal.resets_at.isoformat() if signal.resets_at else ""
            text = redact_text(signal.evidence.text).text
            said = (signal.rule, text, until)
            # What a screen showed first in the same words must not keep the record that decides from acting.
            if (*said, True) not in self._known and (*said, signal.decides) not in self._known:
                self._known.add((*said, signal.decides))
                found.append(replace(signal, evidence=replace(signal.evidence, text=text)))
        return found

    def clear(self) -> None:
        """Forget all signals: what comes next is new, whatever it says."""
        self._known.clear()


class AgentStateTracker:
    """Tracks an agent: `state` is the last one read, `input` what the input line of `screen` holds."""

    def __init__(self, leg: Leg, config: MonitorConfig) -> None:
        self.state: AgentState = "starting"
        self.input: InputState = "hidden"
        self.screen: Screen | None = None
        self.moment = 0
        """How often the agent was reported to work, whatever its screen showed."""
        self._seen_at = 0
        self._began = start_at(leg.starting_at)
        self._rules = config.rules
        self._state_record: dict[str, object] | None = None
        self._had_turns = leg.was_ready or leg.was_busy

    def hear(self, record: Record) -> None:
        """Keep the newest record of the file in which the agent stores its own state."""
        if record.source is Source.STATE_FILE:
            self._state_record = dict(record.data)

    def shift(self, jump: ClockJump) -> None:
        """Follow a jump of the wall clock: the age of the leg stays the same."""
        self._began = self._began.after(jump)

    def see(self, screen: Screen, moment: int) -> bool:
        """Take `screen`, asked for at `moment`; return whether it differs from the one before."""
        before, self.screen, self._seen_at = self.screen, screen, moment
        return before is None or (before.rows, before.title) != (screen.rows, screen.title)

    def say_working(self) -> bool:
        """Set the state to busy until a newer screen shows another; return whether it was not busy."""
        if self.state == "busy":
            return False
        self.state = "busy"
        self.moment += 1
        return True

    def get_doubted_s(self, now: datetime) -> float:
        """Return the seconds for which the leg is still too new to be believed by its screen alone."""
        return max(0.0, _NEW_S - self._began.get_elapsed(now).total_seconds())

    def read(self, *, now: datetime, was_prompted: bool) -> AgentState | None:
        """Read the state from the screen; return it if it is known and another one than before.

        `was_prompted` is whether the leg took a prompt. A screen that is older than the agent's work does not
        show that it waits for a prompt.
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


class ContextTracker:
    """Tracks how full the leg's context is; `reading` is what the agent last reported."""

    def __init__(self, leg: Leg, config: MonitorConfig) -> None:
        self.reading: Reading | None = None
        self._leg = leg
        self._wishes = config.wishes
        self._gauge = ContextGauge(config.rules.context, started_at=leg.starting_at)
        self._level = Level.UNKNOWN

    def shift(self, jump: ClockJump) -> None:
        """Follow a jump of the wall clock."""
        self._gauge.shift(jump)

    def hear(self, record: Record, *, now: datetime) -> ContextFilled | None:
        """Return an input if the record shows that the leg's context passed a mark, else `None`.

        Also `None` if the user wants no marks.
        """
        reading = self._gauge.hear(record, now=now)
        if reading is None:
            return None
        self.reading = reading
        if self._wishes.mode == "off":
            return None
        level = find_level(reading.used, reading.room, self._wishes)
        if level is self._level:
            return None
        self._level = level
        return ContextFilled(self._leg.id, reading.used, reading.room, reading.at, reading.model)
