"""What follows when a limit's end has come: a rest is over, or a preferred agent can be had back."""

from datetime import datetime

from agent_relay.domain.effect import Answered, Effect, Say, WakeAt
from agent_relay.domain.event import Body, LegAnswered, ReturnOffered, SessionWoke
from agent_relay.domain.session import LIVE, Session, State
from agent_relay.logic.elapsed import is_later
from agent_relay.logic.moments import parse_moment
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.resting import find_back, find_check_moment, is_agreed, is_left_to_agent
from agent_relay.logic.succession import begin_handoff, replace_agent


def reset_passed(session: Session, world: World) -> Outcome:
    """A resting session goes on; a working one is offered its preferred agent back, once for each reset."""
    if session.is_held:
        return NOTHING
    if session.state is State.RESTING:
        return _rest_is_over(session, world)
    preferred = _find_preferred(session, world)
    if not preferred or preferred == session.offered or world.return_mode == "off":
        return NOTHING
    by_itself = _returns_by_itself(world)
    offered = Outcome((ReturnOffered(preferred, by_itself),))
    if by_itself and session.state is State.READY:
        return offered.then(_hand_back(session, preferred, world))
    return offered.then(Outcome((), (Say(session.legs[-1].id),)))


def answered(session: Session, answered: Answered, now: datetime) -> Outcome:
    """An agent that works again ends its session's rest, whatever the ledger believed, and is signed in.

    Sources tell at different speeds: an answer from before the refusal or the limit does not end it.
    """
    living, refusal = session.living_leg, session.refusal
    if living is None or living.id != answered.leg:
        return NOTHING
    bodies: tuple[Body, ...] = ()
    if refusal is not None and (answered.at is None or is_later(answered.at, refusal.at, now)):
        bodies = (LegAnswered(living.id),)
    limit = session.limit
    is_over = limit is None or answered.at is None or is_later(answered.at, limit.at, now)
    if session.state is State.RESTING and is_over:
        bodies = (*bodies, SessionWoke(f"{living.agent} answers again"))
    return Outcome(bodies)


def _rest_is_over(session: Session, world: World) -> Outcome:
    """What the first reset of all brings: it need not be that of the agent at work.

    An agent that is to go on unattended is handed its own work: left at its prompt it would wait there.
    """
    state = world.availability.get(session.agent)
    is_back = state is None or not state.resting
    check = find_check_moment(session)
    if check is not None and is_left_to_agent(session, world.now, is_back=is_back):
        return Outcome((), (WakeAt(check),))
    opens = world.quiet.find_next_allowed(world.now, world.zone)
    if not is_agreed(session, world) or opens is None:
        return _offer(session, world, is_back=is_back)
    if opens > world.now:
        return Outcome((), (WakeAt(opens),))
    why = "the first reset has passed"
    if is_back and state is not None and state.installed and state.signed_in:
        return begin_handoff(session, session.agent, "rate_limit", world, why=why)
    return replace_agent(session, world, reason="rate_limit", why=why)


def _offer(session: Session, world: World, *, is_back: bool) -> Outcome:
    """Who can be had again is named once; an agent that waits at its prompt is at work again.

    The reset of the agent at work is still waited for where somebody else's came first.
    """
    living, (name, _) = session.living_leg, find_back(session, world)
    say = (Say(living.id),) if living is not None and not living.headless else ()
    if living is not None and is_back:
        return Outcome((SessionWoke("its limit has reset", offers=name == session.agent),), say)
    offered = Outcome((ReturnOffered(name),), say) if name and name != session.offer else NOTHING
    state = world.availability.get(session.agent)
    until = state.rests_until if living is not None and state is not None else None
    return offered.then(Outcome((), (WakeAt(until),) if until is not None and until > world.now else ()))


def go_back(session: Session, world: World) -> Outcome:
    """At a turn's end, the handoff back that an automatic return was waiting for."""
    preferred = _find_preferred(session, world)
    return _hand_back(session, preferred, world) if preferred and preferred == session.offered else NOTHING


def find_wake(session: Session, world: World) -> tuple[Effect, ...]:
    """The reset a session still waits for, as a new daemon has to wait for it again."""
    first = session.rested_until if session.state is State.RESTING else ""
    own = session.limit.until if session.limit is not None else ""
    # Where a damaged journal holds something else, whoever rests looks again at once.
    moments = {max(parse_moment(until) or world.now, world.now) for until in (first, own) if until}
    check = find_check_moment(session) if session.state is State.RESTING else None
    moments |= {max(check, world.now)} if check is not None else set()
    return tuple(WakeAt(moment) for moment in sorted(moments))


def _hand_back(session: Session, preferred: str, world: World) -> Outcome:
    if not _returns_by_itself(world):
        return NOTHING
    whose = "its own model" if preferred == session.agent else preferred
    return begin_handoff(session, preferred, "command", world, why=f"{whose} is back")


def _returns_by_itself(world: World) -> bool:
    """Whether an agent that is back takes over without being asked; nobody does in the quiet hours."""
    return world.return_mode == "auto" and not world.quiet.contains(world.now, world.zone)


def _find_preferred(session: Session, world: World) -> str:
    """Who left at a limit, is preferred to the agent at work, and can be had again; or empty.

    That may be the agent at work itself, on its own model in place of the fallback.
    """
    if session.state not in LIVE or session.handoff is not None:
        return ""
    at = session.roster.index(session.agent) if session.agent in session.roster else 0
    before = session.roster[:at]
    limited = {
        handoff.from_agent
        for handoff in session.done
        if handoff.reason == "rate_limit" and handoff.to_agent != handoff.from_agent
    }
    for name in before:
        state = world.availability.get(name)
        if name in limited and state and state.installed and state.signed_in and not state.resting:
            return name
    return session.agent if _is_model_back(session, world) else ""


def _is_model_back(session: Session, world: World) -> bool:
    """Whether the agent at work goes on with a fallback model, and the limit of its own is over."""
    leg, limit = session.living_leg, session.limit
    if leg is None or not leg.model or limit is None or limit.agent != leg.agent:
        return False
    state = world.availability.get(leg.agent)
    until = parse_moment(limit.until)
    is_over = until is None or until <= world.now
    return is_over and state is not None and not state.resting
