"""What a handoff inherits from the one before it: parent, depth, and the terms still expected."""

from dataclasses import replace

from agent_relay.domain.events.handoff import HandoffClosed, HandoffFailed
from agent_relay.domain.session import NO_TERMS, Handoff, Session, Terms


def find_parent(session: Session) -> Handoff | None:
    """Return the handoff a new one follows: the one under way, the one that just failed, or the last."""
    return session.handoff or session.retriable or (session.done[-1] if session.done else None)


def inherit_terms(session: Session) -> Terms:
    """Return what is still expected of the next agent: the parent's terms, until a person judged it.

    A cancelled handoff takes its terms with it: those of the one before it count.
    """
    parent = find_parent(session)
    if parent is not None and parent.is_cancelled:
        parent = session.done[-1] if session.done else None
    return NO_TERMS if parent is None or parent.id in session.closed else parent.terms


def find_due(session: Session, body: HandoffClosed | HandoffFailed) -> Handoff | None:
    """Return the handoff whose rollback agent takes over next, with its `why` set; `None` for none.

    A successor that did not start is replaced by the order, in which its rollback agent comes first.
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
    """Return the terms for the rollback agent of a failed handoff: the same, without a rollback."""
    return replace(handoff.terms, rollback="")
