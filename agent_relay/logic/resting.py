"""What goes on by itself after a rest: relay, an agent by its own timer, or nobody. It is decided once."""

from datetime import datetime, timedelta

from agent_relay.domain.effect import Effect, Happened, Say, WakeAt
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.event import LegBusy, LegContinues, ResumeAgreed, SessionWoke
from agent_relay.domain.rest_effect import CancelContinue, Continues, GoOnAsked, ResumeWished
from agent_relay.domain.session import LIVE, Session, State
from agent_relay.logic.moments import parse_moment
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.policy import choose
from agent_relay.logic.succession import begin_handoff

GRACE = timedelta(minutes=5)
"""How long an agent that goes on by itself has for it: one sends its prompt 62 to 92 s after the reset."""
_SENDS_WITHIN = timedelta(minutes=2)
_EARLY = timedelta(minutes=1)
"""A countdown names a minute, rounded: its agent may act that much before it."""


def at_rest(session: Session, happened: Happened, world: World) -> Outcome:
    """Return what follows from what happened about a rest; nothing from anything else.

    Raises WrongUseError or NobodyAvailableError where a person asked for what cannot be.
    """
    match happened:
        case Continues():
            return _continues(session, happened, world)
        case ResumeWished():
            return _resume_wished(session, happened)
        case GoOnAsked():
            return _go_on_asked(session, world)
        case _:
            return NOTHING


def _continues(session: Session, news: Continues, world: World) -> Outcome:
    """An agent's own timer is left to it, or cancelled where nothing may go on by itself then.

    The same timer told again decides nothing anew; one that is to be cancelled still is cancelled.
    """
    leg = session.living_leg
    if leg is None or leg.id != news.leg or leg.headless or session.state not in {*LIVE, State.RESTING}:
        return NOTHING
    known = parse_moment(session.continues_at)
    if news.at is None:
        # At its moment a countdown goes because its agent goes on; before that somebody gave it up.
        is_given_up = known is not None and world.now < known - _EARLY
        return Outcome((LegContinues(leg.id),), _find_next_wake(session)) if is_given_up else NOTHING
    if news.at == known:
        return NOTHING if session.agent_may_continue else Outcome((), (CancelContinue(leg.id, news.at),))
    is_left = world.agent_may_continue and not any(
        world.quiet.contains(at, world.zone) for at in (news.at, news.at + _SENDS_WITHIN)
    )
    after: Effect = WakeAt(news.at + GRACE) if is_left else CancelContinue(leg.id, news.at)
    seen = LegContinues(leg.id, news.at.isoformat(), is_left)
    return Outcome((seen,), (after, *((Say(leg.id),) if session.state is State.RESTING else ())))


def _find_next_wake(session: Session) -> tuple[Effect, ...]:
    """Return the first reset a resting session waits for; nothing where that is not known."""
    at = parse_moment(session.rested_until) if session.state is State.RESTING else None
    return (WakeAt(at),) if at is not None else ()


def find_check_moment(session: Session) -> datetime | None:
    """Return when relay looks whether an agent went on by itself; `None` where none is to."""
    at = parse_moment(session.continues_at)
    return at + GRACE if at is not None and session.agent_may_continue else None


def is_left_to_agent(session: Session, now: datetime, *, is_back: bool) -> bool:
    """Return whether the agent that said it goes on by itself is to be left to it at `now`.

    Until its reset has come, somebody else may be had sooner.
    """
    at, check = parse_moment(session.continues_at), find_check_moment(session)
    if at is None or check is None or session.living_leg is None:
        return False
    return now < check and (is_back or now >= at)


def is_agreed(session: Session, world: World) -> bool:
    """Return whether the user agreed to work going on by itself: for this once, or always."""
    return world.resume_at_reset or session.agreed


def seen_while_resting(session: Session, leg: str, state: str, world: World) -> Outcome:
    """An agent that works at the moment it named went on by itself: the rest is over."""
    at, living = parse_moment(session.continues_at), session.living_leg
    if session.state is not State.RESTING or at is None or state != State.BUSY:
        return NOTHING
    if living is None or living.id != leg:
        return NOTHING
    if world.now < at - _EARLY:
        return NOTHING
    return Outcome((SessionWoke(f"{living.agent} went on by itself"), LegBusy(leg)))


def _resume_wished(session: Session, wish: ResumeWished) -> Outcome:
    """The person's word is journalled, and the reset waited for. Raises WrongUseError where none is known."""
    _check_resting(session)
    if not session.rested_until:
        raise WrongUseError(
            "no reset is known, so there is nothing to wait for", hint="See: agent-relay limits"
        )
    if wish.agreed == session.agreed:
        return NOTHING
    return Outcome((ResumeAgreed(wish.agreed),))


def _go_on_asked(session: Session, world: World) -> Outcome:
    """Work goes on now with whoever can be had again. Raises NobodyAvailableError where nobody can."""
    if session.state is State.READY and session.offer == session.agent:
        return begin_handoff(session, session.agent, "rate_limit", world, why="asked for")
    _check_resting(session)
    name, skipped = find_back(session, world)
    if not name:
        raise NobodyAvailableError("; ".join(skipped) or "the order names no agent")
    return begin_handoff(session, name, "rate_limit", world, why="asked for", skipped=skipped)


def find_back(session: Session, world: World) -> tuple[str, tuple[str, ...]]:
    """Return who can go on after a rest, the agent at work first, and why others cannot; or empty."""
    order = tuple(dict.fromkeys((session.agent, *session.roster)))
    choice = choose(order, world.availability, current="", now=world.now, zone=world.zone)
    return choice.successor, choice.skipped


def _check_resting(session: Session) -> None:
    if session.state is not State.RESTING or session.is_held or session.open_turn is not None:
        raise WrongUseError(f"session {session.id} is not resting", hint="See: agent-relay status")
