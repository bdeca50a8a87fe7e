"""What a watch tells before anybody listens: it is lost, and the log says so."""

import logging

from agent_relay.domain.effect import Happened
from agent_relay.domain.event import PromptSeen

_log = logging.getLogger(__name__)


def stir_nobody() -> None:
    """Nobody is stirred."""


def tell_nobody(happened: Happened) -> None:
    """Nobody hears what happened."""
    _log.warning("told-nobody what=%s", type(happened).__name__)


def tell_nobody_the_name(leg_id: str, _names: dict[str, str]) -> None:
    """Nobody hears which session of its own the agent works in."""
    _log.warning("told-nobody leg=%s what=name", leg_id)


def tell_nobody_the_prompt(seen: PromptSeen) -> None:
    """Nobody hears what the agent was asked."""
    _log.warning("told-nobody leg=%s what=prompt", seen.leg)
