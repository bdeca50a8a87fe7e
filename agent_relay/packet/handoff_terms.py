"""Add the terms of a handoff to its packet: expectations, rollback agent and questions."""

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.session import Handoff, Session


def add_terms(packet: ResumePacket, handoff: Handoff) -> ResumePacket:
    """Return `packet` with what is expected, and who takes over if the handoff fails or has failed.

    `expectations` has deliverables, acceptance_criteria, constraints and priority; `rollback` has agent and
    questions, and for the rollback agent itself `failed`, the handoff it makes up for, and why. Without such
    terms the packet is unchanged.
    """
    terms = handoff.terms
    expectations: dict[str, object] = {
        "deliverables": list(terms.deliverables),
        "acceptance_criteria": list(terms.criteria),
        "constraints": list(terms.constraints),
        "priority": terms.priority,
    }
    rollback: dict[str, object] = {
        "agent": handoff.to_agent if handoff.rolls_back else terms.rollback,
        "questions": list(terms.questions),
        "failed": handoff.rolls_back,
        "why": handoff.why if handoff.rolls_back else "",
    }
    changes = {
        "expectations": {name: value for name, value in expectations.items() if value},
        "rollback": {name: value for name, value in rollback.items() if value},
    }
    return packet.model_copy(update={name: value for name, value in changes.items() if value})


def has_own_terms(session: Session, handoff: Handoff) -> bool:
    """Check whether terms were given for this handoff itself, not only for its parent."""
    known = (*session.done, *((session.retriable,) if session.retriable is not None else ()))
    parent = next((one for one in known if one.id == handoff.parent), None)
    return not handoff.terms.is_empty and (parent is None or parent.terms != handoff.terms)


def list_missing_terms(packet: ResumePacket, text: str) -> tuple[str, ...]:
    """List those expectations and rollback terms of the packet that `text` does not contain."""
    told = " ".join(text.split())
    notes = []
    for field, terms in (("expected of you", packet.expectations), ("if it fails", packet.rollback)):
        for name, value in (terms or {}).items():
            said = [str(one) for one in (value if isinstance(value, list) else [value])]
            missing = [one for one in said if " ".join(one.split()) not in told]
            if missing:
                notes.append(f"{field}, {name.replace('_', ' ')}: {'; '.join(missing)}")
    return tuple(notes)
