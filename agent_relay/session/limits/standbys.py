"""Decide when the next agent is started ahead of a limit, and when that standby is not wanted any more.

A standby is a leg to be: it has no task, no lease and nothing of the working tree until it takes over.
"""

from datetime import datetime, timedelta

from msgspec.structs import asdict

from agent_relay.domain import inputs
from agent_relay.domain.effects import Effect, ShowMessage, SpawnLeg, StopLeg, WakeAt
from agent_relay.domain.events import session as events
from agent_relay.domain.events import standby as lines
from agent_relay.domain.events import work
from agent_relay.domain.limits import Kind, Scope, Signal
from agent_relay.domain.session import Leg, Session, Standby
from agent_relay.domain.state import State
from agent_relay.domain.values import has_passed
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome, explain_unavailable
from agent_relay.session.handoffs import find_native_id

LONGEST = timedelta(hours=1)
"""Longest wait of a standby for its limit: it takes the memory of an agent at work."""
MOST_UNUSED = 3
"""Most standbys of a session within `UNUSED_SPAN` that do not take over; after them none is started."""
UNUSED_SPAN = timedelta(hours=5)
"""The length of the shortest usage window that vendors have."""
_STOPS = frozenset({Kind.LIMIT, Kind.SILENT_LIMIT})
_ASKS = "it asks something before it can work"
"""Questions that only a person answers: whether the folder is trusted, or a sign-in."""
_About = (
    inputs.Spawned
    | inputs.StateSeen
    | inputs.SignalFound
    | inputs.LegGone
    | inputs.ClockSetBack
    | inputs.ContinueAnnounced
)


def begin_standby(session: Session, leg: Leg, agent: str, world: DecisionContext) -> Outcome:
    """Start `agent`, which would take over from `leg`, if it can be and no standby runs.

    One that could not have taken over is not started again with the same configuration for a while.
    """
    setup = world.standbys.get(agent, "")
    if not setup or leg.headless or session.standby is not None:
        return NOTHING
    unused = [one for one in session.unused_standbys if not has_passed(UNUSED_SPAN, one.at, world.now)]
    is_unfit = any(one.is_unfit and (one.agent, one.setup) == (agent, setup) for one in unused)
    if is_unfit or len(unused) >= MOST_UNUSED:
        return NOTHING
    own = find_native_id(session, agent)
    body = lines.StandbyStarting(
        world.leg_id,
        agent,
        native_id=own or world.native_ids.get(agent, ""),
        resumes=bool(own),
        setup=setup,
        effort=world.efforts.get(agent, ""),
        **asdict(world.owner),
    )
    return Outcome((body,), (SpawnLeg(world.leg_id), WakeAt(world.now + LONGEST)))


def find_own(session: Session, happened: inputs.Input) -> Standby | None:
    """Return the standby if that is what happened to, else `None`."""
    standby = session.standby
    is_own = standby is not None and isinstance(happened, _About) and happened.leg == standby.leg.id
    return standby if is_own else None


def hear(standby: Standby, happened: inputs.Input) -> Outcome:
    """Journal what happened to the standby; drop one that needs a person, or cannot work."""
    leg = standby.leg
    match happened:
        case inputs.Spawned(_, holder_pid, child_pid, child_born) if not leg.child_pid:
            return Outcome((lines.StandbyStarted(leg.id, holder_pid, child_pid, child_born),))
        case inputs.StateSeen(_, State.READY) if not (leg.was_ready or standby.is_dropped):
            return Outcome((lines.StandbyReady(leg.id, leg.agent),))
        case inputs.StateSeen(_, State.ASKING):
            return _drop(standby, _ASKS, unfit=True)
        case inputs.SignalFound(_, signal) if signal.decides and (why := _find_hindrance(signal)):
            return _drop(standby, why, unfit=True)
        case inputs.LegGone(_, _, _, why):
            unasked = "" if standby.is_dropped else why or "it ended"
            return Outcome((lines.StandbyEnded(leg.id, leg.agent, unasked),))
        case _:
            return NOTHING


def settle(session: Session, outcome: Outcome, world: DecisionContext) -> Outcome:
    """Drop the standby if it has no use after `outcome`, which follows now, or as the world is."""
    standby = session.standby
    if standby is None or standby.is_dropped:
        return NOTHING
    for body in outcome.bodies:
        if isinstance(body, events.LegStarting) and body.leg == standby.leg.id:
            return NOTHING
        if why := _find_end(standby.leg.agent, body):
            return _drop(standby, why)
    why = _find_reason(session, standby, world)
    return _drop(standby, why) if why else NOTHING


def end_near_limit(session: Session, leg_id: str) -> Outcome:
    """End the near limit of the agent at work, whose window has room again, and drop the standby."""
    standby, living = session.standby, session.living_leg
    if session.near is None or session.handoff is not None or living is None or living.id != leg_id:
        return NOTHING
    show = () if living.headless else (ShowMessage(leg_id),)
    ended = Outcome((events.NearLimitEnded(leg_id),), show)
    if standby is None:
        return ended
    return ended.then(_drop(standby, f"{living.agent} is no longer near a limit"))


def take_up(session: Session) -> tuple[Effect, ...]:
    """Return the effects that a new daemon repeats for the standby."""
    standby = session.standby
    if standby is None:
        return ()
    return (StopLeg(standby.leg.id),) if standby.is_dropped else (WakeAt(_get_deadline(standby)),)


def _find_hindrance(signal: Signal) -> str:
    if signal.scope is Scope.AUTH:
        return "it is signed out or its key is refused"
    return "it is at a limit of its own" if signal.kind in _STOPS else ""


def _drop(standby: Standby, why: str, *, unfit: bool = False) -> Outcome:
    if standby.is_dropped:
        return NOTHING
    return Outcome(
        (lines.StandbyDropped(standby.leg.id, standby.leg.agent, why, unfit),), (StopLeg(standby.leg.id),)
    )


def _get_deadline(standby: Standby) -> datetime:
    return standby.leg.starting_at + LONGEST


def _find_end(agent: str, body: events.Body) -> str:
    """Return why a standby of `agent` is not wanted after this event; empty if it still is."""
    match body:
        case events.SessionStopping() | events.SessionEnded():
            return "the session ends"
        case events.SessionRested():
            return "the session rests"
        case work.HandoffBegun(to_agent=to) | work.SuccessorChosen(agent=to) if to != agent:
            return f"{to or 'nobody'} takes over"
        case events.LegStarting():
            return "the next agent is started anew"
        case work.TurnBegun():
            return "the session goes on without a screen"
        case _:
            return ""


def _find_reason(session: Session, standby: Standby, world: DecisionContext) -> str:
    """Return why the standby is not wanted as the world is now; empty if it still is."""
    agent = standby.leg.agent
    if world.standbys.get(agent) != standby.setup:
        return "the configuration has changed"
    if session.handoff is not None:
        return ""
    if why := explain_unavailable(world.availability.get(agent), now=world.now, zone=world.zone):
        return why
    waited = has_passed(LONGEST, standby.leg.starting_at, world.now)
    return "it was not needed for an hour" if waited else ""
