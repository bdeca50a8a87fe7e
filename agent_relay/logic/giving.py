"""What follows once a leg was given what it is to work on, or could not be: its packet or the task."""

from dataclasses import replace

from agent_relay.domain.effect import Delivered, DeliverFailed, Say, TaskGiven
from agent_relay.domain.event import TaskDelivered
from agent_relay.domain.handoff_event import HandoffConfirmed, HandoffFailed, PacketDelivered
from agent_relay.domain.session import Session, Step
from agent_relay.logic.outcome import NOTHING, Outcome, World
from agent_relay.logic.succession import is_current, try_roll_back


def given(session: Session, happened: Delivered | DeliverFailed | TaskGiven, world: World) -> Outcome:
    """What follows from the end of a delivery; late news of one follows nothing."""
    match happened:
        case TaskGiven(leg):
            is_new = any(known.id == leg and not known.was_given for known in session.legs)
            return Outcome((TaskDelivered(leg),) if is_new else ())
        case Delivered(handoff, leg) if is_current(session, handoff, Step.SPAWNED):
            works = session.living_leg is not None and session.living_leg.was_busy
            confirmed = (HandoffConfirmed(handoff, leg),) if works else ()
            return Outcome((PacketDelivered(handoff, leg), *confirmed))
        case DeliverFailed(handoff) if is_current(session, handoff, Step.SPAWNED, Step.DELIVERED):
            return _deliver_failed(session, happened, world)
        case _:
            return NOTHING


def _deliver_failed(session: Session, failed: DeliverFailed, world: World) -> Outcome:
    """The successor is in charge without its packet, unless somebody was named for when it fails."""
    told = Outcome((HandoffFailed(failed.handoff, "deliver", failed.why),), (Say(failed.leg),))
    handoff = session.handoff
    if handoff is None or not handoff.terms.rollback:
        return told
    after = replace(session, handoff=None, retriable=handoff)
    rolled = try_roll_back(after, handoff, world, why=failed.why)
    return told if isinstance(rolled, str) else told.then(rolled)
