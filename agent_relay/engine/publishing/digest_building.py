"""Build the digest that a handoff's successor writes a document from; runs in a process of its own.

It reads the same sources as a packet, and writes nothing.
"""

from agent_relay.engine.publishing._packet_building import PacketOrder, gather_own, read_previous
from agent_relay.packet.digest import build_digest
from agent_relay.redact.text import redact_text
from agent_relay.session.views.messages import session_folder
from agent_relay.store import packets


def build_ordered_digest(order: PacketOrder) -> str:
    """Return the digest of the leg that hands over, without secrets; empty if there is nothing in it.

    Raises RelayError if it cannot be built.
    """
    session, handoff = order.session, order.handoff
    leg = next(leg for leg in session.legs if leg.id == handoff.from_leg)
    previous = read_previous(session)
    facts = gather_own(order, leg, has_previous=previous is not None)
    kept = packets.read_narrative(session_folder(session), leg.id)
    digest = build_digest(facts, previous, written=kept.text if kept is not None else "")
    return redact_text(digest, known=order.gather_secrets(), allow=order.allow).text
