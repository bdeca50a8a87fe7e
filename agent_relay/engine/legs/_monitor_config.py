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


def ignore_change() -> None:
    """Ignore a change: there is no listener yet."""


def log_dropped(happened: Input) -> None:
    """Log that an input was dropped because there is no listener yet."""
    _log.warning("told-nobody what=%s", type(happened).__name__)


def log_dropped_name(leg_id: str, _names: dict[str, str]) -> None:
    """Log that the id of the agent's own session was dropped because there is no listener yet."""
    _log.warning("told-nobody leg=%s what=name", leg_id)


def log_dropped_prompt(seen: PromptSeen) -> None:
    """Log that a prompt was dropped because there is no listener yet."""
    _log.warning("told-nobody leg=%s what=prompt", seen.leg)
