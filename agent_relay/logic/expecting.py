"""What a handoff is given along, as its packet says it."""

from agent_relay.domain.packet import ResumePacket
from agent_relay.domain.session import Handoff


def add_terms(packet: ResumePacket, handoff: Handoff) -> ResumePacket:
    """`packet` with what is expected, and who takes over if it fails or did; as it was where nothing is.

    `expectations` has deliverables, acceptance_criteria, constraints and priority; `rollback` has agent and
    questions, and for the rollback agent itself `failed`, the handoff it makes up for, and why.
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
