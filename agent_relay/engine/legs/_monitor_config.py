"""What a monitor is made with: how the leg's evidence is read, and who hears what it finds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

from agent_relay.domain.context import NO_WISHES, ContextWishes
from agent_relay.domain.documents.adapter import SourceSpec, StreamRule
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.inputs import Input
from agent_relay.domain.session import Leg
from agent_relay.domain.signal import Source
from agent_relay.session.outcome import Outcome


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
