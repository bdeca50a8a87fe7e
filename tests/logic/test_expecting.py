"""What is expected of a handoff stands in its packet."""

from datetime import UTC, datetime

from agent_relay.domain.packet import Reason, ResumePacket
from agent_relay.domain.session import Handoff
from agent_relay.domain.terms import Terms
from agent_relay.logic.expecting import add_terms

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
PACKET = ResumePacket(
    packet_id="P",
    session_id="S",
    sequence=1,
    created_at=NOW,
    previous_agent="ada",
    target_agent="bob",
    checkpoint_reason=Reason.MANUAL,
)


def test_nothing_said_is_nothing_added() -> None:
    """An ordinary failover has the packet it always had."""
    assert add_terms(PACKET, Handoff("H", "L", "ada", "bob", "manual", NOW)) == PACKET


def test_the_successor_reads_what_is_expected_and_who_would_take_over() -> None:
    """Who knows that it will be asked keeps the answers ready."""
    terms = Terms(("a door",), ("it opens",), ("no nails",), "high", ("shell",), "cas", ("why?",))
    packet = add_terms(PACKET, Handoff("H", "L", "ada", "bob", "manual", NOW, terms=terms))
    assert packet.expectations == {
        "deliverables": ["a door"],
        "acceptance_criteria": ["it opens"],
        "constraints": ["no nails"],
        "priority": "high",
    }
    assert packet.rollback == {"agent": "cas", "questions": ["why?"]}


def test_the_rollback_agent_reads_what_failed_and_what_to_answer() -> None:
    """It is called because something went wrong, and should say what."""
    handoff = Handoff(
        "H2",
        "L2",
        "bob",
        "cas",
        "failure",
        NOW,
        why="stuck",
        rolls_back="H1",
        terms=Terms(questions=("why?",)),
    )
    packet = add_terms(PACKET, handoff)
    assert packet.rollback == {"agent": "cas", "questions": ["why?"], "failed": "H1", "why": "stuck"}
    assert packet.expectations is None
