"""What follows where a handoff's packet cannot be written: nobody is lost, and nothing that was achieved."""

from dataclasses import replace

from agent_relay.domain.effect import PublishFailed
from agent_relay.domain.event import SessionEnded, SessionRested
from agent_relay.domain.handoff_event import HandoffFailed
from agent_relay.domain.session import Handoff, Session, State
from agent_relay.logic.outcome import Outcome, World
from agent_relay.logic.policy import choose
from agent_relay.logic.succession import begin_leg, find_native_id, try_roll_back


def publish_failed(session: Session, failed: PublishFailed, handoff: Handoff, world: World) -> Outcome:
    """Its rollback agent takes over, with a packet of its own, or else in the session it had here.

    Without one the session ends; its journal and what packets there are stay, and the handoff can be
    retried. Whoever lives after all stays in charge.
    """
    if session.living_leg is not None:
        return Outcome((HandoffFailed(failed.handoff, handoff.step, failed.why),))
    told = Outcome((HandoffFailed(failed.handoff, "publish", failed.why),))
    why_not = ""
    if not handoff.is_cancelled:
        after = replace(session, handoff=None, retriable=handoff, state=State.LIMITED)
        rolled = _find_successor(after, handoff, world, why=failed.why)
        if isinstance(rolled, Outcome):
            return told.then(rolled)
        why_not = f" ({rolled})" if rolled else ""
    return told.then(Outcome((SessionEnded(f"{failed.why}{why_not}"),)))


def _find_successor(session: Session, handoff: Handoff, world: World, *, why: str) -> Outcome | str:
    """How the rollback agent takes over, or why it cannot; empty where nobody was named."""
    if handoff.terms.rollback:
        return try_roll_back(session, handoff, world, why=why)
    if not handoff.rolls_back or not find_native_id(session, handoff.to_agent):
        return ""
    # Its own packet could not be written either: what it knew itself is what is left.
    name = handoff.to_agent
    choice = choose((name,), world.availability, current="", now=world.now, zone=world.zone)
    if not choice.successor:
        return choice.skipped[0]
    return Outcome((SessionRested(why),)).then(begin_leg(session, name, world, resumes=True))
