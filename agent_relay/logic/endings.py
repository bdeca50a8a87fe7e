"""What the end of a leg means: the next step of a handoff, of a turn, or the end of the session."""

from dataclasses import replace

from agent_relay.domain.effect import LegGone, PublishPacket
from agent_relay.domain.event import LegEnded, SessionEnded
from agent_relay.domain.handoff_event import HandoffFailed, PredecessorStopped
from agent_relay.domain.session import Handoff, Leg, Session, State, Step
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.spending import is_ended_by_budget
from agent_relay.logic.succession import replace_agent, rest_cancelled
from agent_relay.logic.turns import is_turn_done, turn_over


def leg_gone(session: Session, gone: LegGone, world: World) -> Outcome:  # noqa: PLR0911 - one arm a case
    """What the end of the newest leg means: the next step of a handoff, or the end of the session."""
    leg = session.living_leg
    if leg is None or leg.id != gone.leg:
        return NOTHING
    handoff = session.handoff
    ended = LegEnded(leg.id, "stopped" if session.state is State.HANDING_OFF else gone.how, gone.status)
    if handoff is not None and handoff.step is Step.BEGUN:
        stopped = PredecessorStopped(handoff.id, leg.id)
        return Outcome((ended, stopped), (PublishPacket(handoff.id),))
    if handoff is not None and handoff.leg == leg.id and handoff.is_cancelled:
        return Outcome((ended,)).then(rest_cancelled(handoff))
    if handoff is not None and handoff.leg == leg.id and _is_failure(session, leg, handoff, gone):
        return _successor_failed(session, handoff, ended, gone, world)
    if leg.headless:
        return turn_over(session, leg, ended, gone)
    if session.state is State.RESTING:
        return Outcome((ended,))
    spent = session.why if session.state is State.STOPPING and is_ended_by_budget(session) else ""
    return Outcome((ended, SessionEnded(spent or gone.why or f"{leg.agent} {ended.how}")))


def _is_failure(session: Session, leg: Leg, handoff: Handoff, gone: LegGone) -> bool:
    """Whether this end of a successor is a failure to take over, or one its handoff named a rollback for."""
    if leg.headless and (session.state is State.STOPPING or is_turn_done(session, gone)):
        return False
    return not leg.was_ready or _rolls_back(handoff, gone)


def _rolls_back(handoff: Handoff, gone: LegGone) -> bool:
    """Whether the end of a successor that had been ready is a failure: not where a person let it leave."""
    return bool(handoff.terms.rollback) and (gone.how != "exited" or gone.status != 0)


def _successor_failed(
    session: Session, handoff: Handoff, ended: LegEnded, gone: LegGone, world: World
) -> Outcome:
    """The successor ended before it worked on its packet: the next of the roster takes its place."""
    why = gone.why or f"{handoff.to_agent} ended before it was ready"
    failed = HandoffFailed(handoff.id, handoff.step, why)
    tried = (*session.tried, handoff.to_agent)
    legs = tuple(
        replace(leg, how=ended.how, status=ended.status) if leg.id == ended.leg else leg
        for leg in session.legs
    )
    after = replace(session, handoff=None, retriable=handoff, tried=tried, legs=legs, state=State.LIMITED)
    return Outcome((ended, failed)).then(replace_agent(after, world, reason="failure", why=why))
