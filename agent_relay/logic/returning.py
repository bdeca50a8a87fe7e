"""What follows when a limit's end has come: a rest is over, or a preferred agent can be had back."""

from datetime import datetime

from agent_relay.domain.effect import Effect, WakeAt
from agent_relay.domain.event import ReturnOffered, SessionWoke
from agent_relay.domain.session import LIVE, Session, State
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.succession import begin_handoff, replace_agent


def reset_passed(session: Session, world: World) -> Outcome:
    """A resting session goes on; a working one is offered its preferred agent back, once for each reset."""
    if session.state is State.RESTING:
        if session.living_leg is not None:
            return Outcome((SessionWoke("its limit has reset"),))
        if world.resume_at_reset:
            return replace_agent(session, world, reason="rate_limit", why="the first reset has passed")
        return NOTHING
    preferred = _find_preferred(session, world)
    if not preferred or preferred == session.offered or world.return_mode == "off":
        return NOTHING
    offered = Outcome((ReturnOffered(preferred),))
    is_between_turns = session.state is State.READY
    return offered.then(_hand_back(session, preferred, world)) if is_between_turns else offered


def answered(session: Session, leg: str) -> Outcome:
    """An agent that works again ends its session's rest, whatever the ledger believed."""
    living = session.living_leg
    if session.state is State.RESTING and living is not None and living.id == leg:
        return Outcome((SessionWoke(f"{living.agent} answers again"),))
    return NOTHING


def go_back(session: Session, world: World) -> Outcome:
    """At a turn's end, the handoff back that an automatic return was waiting for."""
    preferred = _find_preferred(session, world)
    return _hand_back(session, preferred, world) if preferred and preferred == session.offered else NOTHING


def find_wake(session: Session, world: World) -> tuple[Effect, ...]:
    """The reset a session still waits for, as a new daemon has to wait for it again."""
    until = session.rested_until if session.state is State.RESTING else session.limit and session.limit.until
    moment = datetime.fromisoformat(until) if until else None
    return (WakeAt(max(moment, world.now)),) if moment else ()


def _hand_back(session: Session, preferred: str, world: World) -> Outcome:
    if world.return_mode != "auto":
        return NOTHING
    return begin_handoff(session, preferred, "command", world, why=f"{preferred} is back")


def _find_preferred(session: Session, world: World) -> str:
    """An agent that left at a limit, is preferred to the one at work, and can be had again; or empty."""
    if session.state not in LIVE or session.handoff is not None or session.agent not in session.roster:
        return ""
    before = session.roster[: session.roster.index(session.agent)]
    limited = {handoff.from_agent for handoff in session.done if handoff.reason == "rate_limit"}
    for name in before:
        state = world.availability.get(name)
        if name in limited and state and state.installed and state.signed_in and not state.resting:
            return name
    return ""
