"""How one leg's evidence is read, and the callbacks of a monitor that has no listener yet.

Until callbacks are set, what a monitor reports is dropped and the log says so.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from agent_relay.domain.context import NO_WISHES, ContextWishes
from agent_relay.domain.documents.adapter import SourceSpec, StreamRule
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.events.session import PromptSeen
from agent_relay.domain.inputs import Input

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MonitorConfig:
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
    says: Sequence[StreamRule] = ()


def ignore_change() -> None:
    """Nobody is stirred."""


def log_dropped(happened: Input) -> None:
    """Nobody hears what happened."""
    _log.warning("told-nobody what=%s", type(happened).__name__)


def log_dropped_name(leg_id: str, _names: dict[str, str]) -> None:
    """Nobody hears which session of its own the agent works in."""
    _log.warning("told-nobody leg=%s what=name", leg_id)


def log_dropped_prompt(seen: PromptSeen) -> None:
    """Nobody hears what the agent was asked."""
    _log.warning("told-nobody leg=%s what=prompt", seen.leg)
