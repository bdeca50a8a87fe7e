"""Warnings that a limit is close: which windows a session's user was told of, so that each is told once."""

from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.event import SignalSeen
from agent_relay.domain.session import Limit, Session
from agent_relay.logic.moments import parse_moment

# Countdowns and clock times move the reset they imply by their rounding; usage windows are hours apart.
_SAME_WINDOW = timedelta(minutes=10)


def is_warning(body: SignalSeen) -> bool:
    """Whether a seen signal says for certain that a limit is close."""
    return body.decides and body.scope == "warning"


def is_told(session: Session, body: SignalSeen, at: datetime) -> bool:
    """Whether the user was told that this window is nearly used up, by whichever source said it first."""
    return any(
        _is_same(known, body.agent, body.model, body.until)
        for known in session.warned
        if not known.until or _is_open(known, at)
    )


def note_warning(session: Session, warning: Limit) -> Session:
    """The session whose agent is near a limit, its user told of this window until it resets."""
    kept = [known for known in session.warned if not known.until or _is_open(known, warning.at)]
    same = [known for known in kept if _is_same(known, warning.agent, warning.model, warning.until)]
    if not any(known.until for known in same):
        kept = [*(known for known in kept if known not in same), warning]
    return replace(session, near=warning, warned=tuple(kept))


def forget_leg(session: Session, at: datetime) -> Session:
    """The session at the beginning of another leg: only windows known to be open are still told of."""
    return replace(session, near=None, warned=tuple(known for known in session.warned if _is_open(known, at)))


def _is_same(known: Limit, agent: str, model: str, until: str) -> bool:
    """Whether a warning may be of the window of a known one: an unknown reset may be any."""
    if (known.agent, known.model) != (agent, model):
        return False
    one, other = parse_moment(known.until), parse_moment(until)
    return one is None or other is None or abs(one - other) <= _SAME_WINDOW


def _is_open(known: Limit, at: datetime) -> bool:
    until = parse_moment(known.until)
    return until is not None and until > at
