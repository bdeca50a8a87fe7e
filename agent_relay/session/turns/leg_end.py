"""Decide what the end of a leg means: the next step of a handoff or turn, or the session's end."""

from dataclasses import replace

from agent_relay.domain.effects import PublishPacket
from agent_relay.domain.events.handoff import HandoffFailed, PredecessorStopped
from agent_relay.domain.events.session import LegEnded, SessionEnded
from agent_relay.domain.inputs import LegGone
from agent_relay.domain.session import Handoff, Leg, Session, Step
from agent_relay.domain.state import LIVE, State
from agent_relay.session.handoff.lifecycle import replace_agent, rest_cancelled
from agent_relay.session.outcome import NOTHING, DecisionContext, Outcome
from agent_relay.session.turns.lifecycle import is_turn_done, turn_over
from agent_relay.session.views.event_lines import name_end
from agent_relay.session.warnings import is_ended_by_budget

_LET_GO = frozenset({0, 130})
"""The statuses of an agent that a person had leave: by its own command, or by an interrupt."""


def leg_gone(session: Session, gone: LegGone, world: DecisionContext) -> Outcome:  # noqa: PLR0911 - one arm a case
    """Decide what follows the end of the newest leg: the next step of a handoff, or the session's end."""
    leg = session.living_leg
    if leg is None or leg.id != gone.leg:
        return NOTHING
    handoff = _find_unconfirmed(session, leg)
    ended = LegEnded(leg.id, "stopped" if session.state is State.HANDING_OFF else gone.how, gone.status)
    if handoff is not None and handoff.step is Step.BEGUN:
        stopped = PredecessorStopped(handoff.id, leg.id)
        return Outcome((ended, stopped), (PublishPacket(handoff.id),))
    if handoff is not None and handoff.leg == leg.id and handoff.is_cancelled:
        return Outcome((ended,)).then(rest_cancelled(handoff))
    if handoff is not None and handoff.leg == leg.id and is_failure(session, leg, handoff, gone):
        return Outcome((ended,)).then(successor_failed(session, handoff, ended, gone.why, world))
    if leg.headless:
        return turn_over(session, leg, ended, gone)
    if session.state is State.RESTING:
        return Outcome((ended,))
    spent = session.why if session.state is State.STOPPING and is_ended_by_budget(session) else ""
    return Outcome((ended, SessionEnded(spent or gone.why or f"{leg.agent} {name_end(ended.how)}")))


def _find_unconfirmed(session: Session, leg: Leg) -> Handoff | None:
    """Return the handoff under way, or the one that began `leg` and whose packet was never delivered.

    The second only if the leg took no prompt: the next agent must still get that packet, because nothing else
    has the user's prompt.
    """
    left = session.retriable
    if session.handoff is not None or left is None or left.leg != leg.id or left.is_cancelled:
        return session.handoff
    return None if leg.was_busy or session.state not in LIVE else left


def is_failure(session: Session, leg: Leg, handoff: Handoff, gone: LegGone) -> bool:
    """Return whether this end of a successor is a failure to take over.

    It is none if a person let a ready one leave, unless a rollback agent is named and the exit was not clean.
    """
    if leg.headless and (session.state is State.STOPPING or is_turn_done(session, gone)):
        return False
    was_let_go = gone.how == "exited" and gone.status in _LET_GO
    return not leg.was_ready or not was_let_go or _rolls_back(handoff, gone)


def _rolls_back(handoff: Handoff, gone: LegGone) -> bool:
    """Return whether a rollback agent is named and the successor's end was no clean exit."""
    return bool(handoff.terms.rollback) and (gone.how != "exited" or gone.status != 0)


def successor_failed(
    session: Session, handoff: Handoff, ended: LegEnded, why: str, world: DecisionContext
) -> Outcome:
    """Replace a successor that ended before it worked on its packet.

    `ended` is that end, journalled before the outcome of this.
    """
    failed = HandoffFailed(handoff.id, handoff.step, why or _tell_end(session, handoff))
    tried = (*session.tried, handoff.to_agent)
    legs = tuple(
        replace(leg, how=ended.how, status=ended.status) if leg.id == ended.leg else leg
        for leg in session.legs
    )
    after = replace(session, handoff=None, retriable=handoff, tried=tried, legs=legs, state=State.LIMITED)
    return Outcome((failed,)).then(replace_agent(after, world, reason="failure", why=failed.why))


def _tell_end(session: Session, handoff: Handoff) -> str:
    leg = session.leg
    before = "it was given its packet" if leg is not None and leg.was_ready else "it was ready"
    return f"{handoff.to_agent} ended before {before}"
