"""How one leg's evidence is to be read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agent_relay.domain.adapter import SourceSpec
from agent_relay.domain.context import NO_WISHES, ContextWishes
from agent_relay.domain.rules import Rules
from agent_relay.domain.saying import Saying


@dataclass(frozen=True, slots=True)
class Senses:
    """The rules of the leg's agent, and what is known and wanted of this leg.

    `known` are (rule, text, until, decides) of signals already in the journal: a new daemon hears old
    records again. `wishes` are the marks of the leg's context; it is not read while they are off.
    `says` are what the records of a headless leg's output mean.
    """

    rules: Rules
    sources: Sequence[SourceSpec]
    zone: tzinfo
    patience_s: float
    known: frozenset[tuple[str, str, str, bool]] = frozenset()
    wishes: ContextWishes = NO_WISHES
    says: Sequence[Saying] = ()
