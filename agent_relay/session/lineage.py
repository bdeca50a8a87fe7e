"""What a handoff inherits from the one before it: parent, depth, and the terms still expected."""

from dataclasses import replace

from agent_relay.domain.events.handoff import HandoffClosed, HandoffFailed
from agent_relay.domain.session import NO_TERMS, Handoff, Session, Terms


def find_parent(session: Session) -> Handoff | None:
    """The handoff a new one goes on from: the one under way, the one that just failed, or the last one."""
    return session.handoff or session.retriable or (session.done[-1] if session.done else None)


def inherit_terms(session: Session) -> Terms:
    """Return what is still expected of whoever works next: the parent's terms, until a person judged it.

    The terms of a cancelled handoff ended with it: those of the one before it count.
    """
    parent = find_parent(session)
    if parent is not None and parent.is_cancelled:
        parent = session.done[-1] if session.done else None
    return NO_TERMS if parent is None or parent.id in session.closed else parent.terms


def find_due(session: Session, body: HandoffClosed | HandoffFailed) -> Handoff | None:
    """The handoff whose rollback agent takes over next, if it has one; `why` is why.

    A successor that did not start gives way by the order, in which its rollback agent comes first.
    """
    match body:
        case HandoffClosed(handoff, "failed", note, skipped) if not skipped:
            failed = next((done for done in session.done if done.id == handoff), None)
            why = note or (f"{failed.to_agent} did not succeed" if failed is not None else "")
        case HandoffFailed(_, "deliver" | "publish", why):
            failed = session.handoff
        case _:
            return None
    return replace(failed, why=why) if failed is not None and failed.terms.rollback else None


def build_rollback_terms(handoff: Handoff) -> Terms:
    """What the rollback agent of a failed handoff is given: the same, and the questions are now its own."""
    return replace(handoff.terms, rollback="")
