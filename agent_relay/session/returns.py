"""Decide when a preferred agent that left at a limit gets its session back, and what puts that off.

It returns at a turn's end while nobody types, a grace after its reset, never while its own words say that a
window is full, and at most twice in five hours. What begins unasked has its consent in the journal first.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

import msgspec

from agent_relay.domain.effects import AwaitQuiet, Effect, ShowMessage, WakeAt
from agent_relay.domain.events import session as events
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Session
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.text.plain import render_count
from agent_relay.domain.values import BY_CONFIG, has_passed, replace
from agent_relay.session.decision import NOTHING, Availability, DecisionContext, Outcome
from agent_relay.session.handoffs import begin_handoff

MOST_UNASKED = 2
"""Most returns unasked within `UNASKED_SPAN`: an agent may be limited again at once, all night."""
UNASKED_SPAN = timedelta(hours=5)
"""As long as the shortest usage window known."""


class _Obstacle(msgspec.Struct, frozen=True):
    """Something that keeps `agent` from returning until a moment (`None`: unknown); `why` if it is told."""

    agent: str
    until: datetime | None
    why: str = ""


class _Doubt(msgspec.Struct, frozen=True):
    """Reason why an available agent does not return by itself; asked again at `until`, `None` for never."""

    why: str = ""
    until: datetime | None = None


_NO_DOUBT = _Doubt()


def find_limit_end(session: Session, agent: str) -> datetime | None:
    """Return the reset that the agent's last limit here named; `None` if it named none."""
    return next((parse_moment(one.until) for one in session.limits if one.agent == agent), None)


def find_unasked_again(session: Session, agent: str, now: datetime) -> datetime | None:
    """Return when `agent` may go on unasked again; `None` if it may now."""
    recent = [
        one.at for one in session.unasked if one.agent == agent and not has_passed(UNASKED_SPAN, one.at, now)
    ]
    return min(recent) + UNASKED_SPAN if len(recent) >= MOST_UNASKED else None


def tell_often(agent: str) -> str:
    """Return why an agent does not go on unasked for some time."""
    hours = UNASKED_SPAN // timedelta(hours=1)
    return f"{agent} went on unasked {render_count(MOST_UNASKED, 'time')} within {hours} hours"


def reset_passed(session: Session, world: DecisionContext) -> Outcome:
    """Offer the preferred agent that is available again, once for each reset, or have it return."""
    name, obstacles = _find_preferred(session, world)
    if world.return_mode == "off" or session.living_leg is None:
        return NOTHING
    wakes = _wait_for(obstacles, world)
    if not name:
        return _put_off(session, obstacles).then(wakes)
    doubt = _find_doubt(session, name, world)
    by_itself = world.return_mode == "auto" and doubt is _NO_DOUBT
    again = () if doubt.until is None else (WakeAt(doubt.until),)
    bodies: tuple[events.Body, ...] = ()
    effects: tuple[Effect, ...] = ()
    if name != session.offered or (by_itself and not session.returns):
        bodies = (events.ReturnOffered(name, by_itself, doubt.why),)
        waits_for_turn = session.state is not State.READY or not by_itself
        effects = (ShowMessage(session.living_leg.id),) if waits_for_turn else ()
    after = replace(session, offered=name, returns=by_itself or (name == session.offered and session.returns))
    return Outcome(bodies, (*effects, *again)).then(wakes).then(await_quiet(after, world))


def await_quiet(session: Session, world: DecisionContext) -> Outcome:
    """Wait at the prompt until nobody types, if a return is due; withdraw one that cannot be made by now."""
    name, leg = _find_due(session), session.living_leg
    if not name or leg is None or session.state is not State.READY:
        return NOTHING
    found, obstacles = _find_preferred(session, world)
    if found != name:
        return _put_off(session, obstacles).then(_wait_for(obstacles, world))
    doubt = _find_doubt(session, name, world)
    if doubt is _NO_DOUBT:
        return Outcome((), (AwaitQuiet(leg.id),))
    return Outcome((), (WakeAt(doubt.until),) if doubt.until is not None else ())


def begin_quietly(session: Session, leg: str, world: DecisionContext) -> Outcome:
    """Begin the return that is due, now that nobody types; what keeps it from beginning is noted."""
    checked = await_quiet(session, world)
    living, name = session.living_leg, _find_due(session)
    if living is None or living.id != leg or not any(isinstance(one, AwaitQuiet) for one in checked.effects):
        return checked
    whose = "its own model" if name == session.agent else name
    begun = begin_handoff(session, name, "command", world, why=f"{whose} is back")
    if not begun.bodies:
        return NOTHING
    reset = find_limit_end(session, name)
    moment = reset.isoformat() if reset is not None else ""
    consent = events.ConsentUsed(name, "return", moment, via=BY_CONFIG.via)
    return Outcome((consent,)).then(begun)


def _find_due(session: Session) -> str:
    """Return the agent that was said to return at the turn's end; empty for none."""
    return session.offered if session.returns and session.handoff is None else ""


def _find_preferred(session: Session, world: DecisionContext) -> tuple[str, Sequence[_Obstacle]]:
    """Return the first preferred agent that left at its limit and may return; and what keeps the others."""
    obstacles: list[_Obstacle] = []
    if session.state not in LIVE or session.handoff is not None:
        return "", ()
    for name in _list_left(session):
        state = world.availability.get(name)
        if state is None or not state.installed or not state.signed_in:
            continue
        obstacle = _find_obstacle(session, name, state, world)
        if obstacle is None:
            return name, obstacles
        obstacles.append(obstacle)
    return "", obstacles


def _list_left(session: Session) -> Iterator[str]:
    """List the preferred agents whose last handoff to another one was at their limit.

    That may be the agent at work itself, on a fallback in place of its own model.
    """
    at = session.roster.index(session.agent) if session.agent in session.roster else 0
    left = {done.from_agent: done.reason for done in session.done if done.to_agent != done.from_agent}
    yield from (name for name in session.roster[:at] if left.get(name) == "rate_limit")
    leg, limit = session.living_leg, session.limit
    if leg is not None and leg.model and limit is not None and limit.agent == leg.agent:
        yield leg.agent


def _find_obstacle(
    session: Session, name: str, state: Availability, world: DecisionContext
) -> _Obstacle | None:
    grace, ended = world.reset_grace, find_limit_end(session, name)
    if state.resting:
        why = "its limit lasts longer than it said" if name == session.offered else ""
        return _Obstacle(name, state.rests_until and state.rests_until + grace, why)
    # Another agent that does not rest before its reset was said to be available: there is no wait.
    is_early = ended is not None and world.now < ended and name != session.agent
    if ended is not None and not is_early and world.now < ended + grace:
        return _Obstacle(name, ended + grace)
    if state.full is not None and state.full.until > world.now:
        return _Obstacle(name, state.full.until + grace, f"its {state.full.name} reads full again")
    return None


def _find_doubt(session: Session, name: str, world: DecisionContext) -> _Doubt:
    """Return what speaks against a return unasked; nothing if returns are always asked for."""
    if world.return_mode != "auto":
        return _NO_DOUBT
    brought = next((one for one in reversed(session.done) if one.leg == session.legs[-1].id), None)
    if brought is not None and brought.reason == "manual":
        return _Doubt(f"{session.agent} was chosen by hand")
    again = find_unasked_again(session, name, world.now)
    if again is not None:
        return _Doubt(tell_often(name), again)
    if world.quiet.contains(world.now, world.zone):
        return _Doubt("these are quiet hours", world.quiet.find_next_allowed(world.now, world.zone))
    return _NO_DOUBT


def _put_off(session: Session, obstacles: Sequence[_Obstacle]) -> Outcome:
    """Say once that an agent does not return, although its reset has passed."""
    told = [
        events.ReturnPutOff(one.agent, one.why, one.until.isoformat() if one.until is not None else "")
        for one in obstacles
        if one.why
    ]
    known = {(one.agent, one.why, one.until) for one in session.put_off}
    fresh = tuple(one for one in told if (one.agent, one.why, one.until) not in known)
    leg = session.living_leg
    return Outcome(fresh, (ShowMessage(leg.id),) if fresh and leg is not None else ())


def _wait_for(obstacles: Sequence[_Obstacle], world: DecisionContext) -> Outcome:
    moments = {one.until for one in obstacles if one.until is not None and one.until > world.now}
    return Outcome((), tuple(WakeAt(at) for at in sorted(moments)))
