"""What is expected of a handoff stands in its packet."""

from datetime import UTC, datetime

from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.session import Handoff, Session, Terms
from agent_relay.domain.values import replace
from agent_relay.packet.handoff_facts import add_terms, has_own_terms, list_missing_terms
from tests.packet.test_later_words import render

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


def test_what_is_expected_is_told_in_plain_words() -> None:
    """The names of fields are for programs."""
    terms = Terms(
        ("a door",), ("it opens",), ("no nails",), "high", checks=("true",), proposed_checks=("ls",)
    )
    packet = add_terms(PACKET, Handoff("H", "L", "ada", "bob", "manual", NOW, terms=terms))
    told = render(packet).partition("## Expected of you\n")[2].partition("\n\n")[0]
    assert told == (
        "- to deliver:\n  - a door\n- it is done when:\n  - it opens\n"
        "- commands that have to succeed:\n  - true\n"
        "- commands an agent proposed, once a person agrees:\n  - ls\n- within these limits:\n  - no nails\n"
        "- priority: high"
    )


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


def test_what_was_passed_on_is_not_what_was_given() -> None:
    """What the user deleted of it stays deleted; what they said just now is told."""
    door = Terms(("a door",))
    parent = Handoff("H1", "L", "ada", "bob", "manual", NOW, terms=door)
    session = Session("S", "/r", "/r", NOW, NOW, done=(parent,))
    handoff = Handoff("H2", "L2", "bob", "cas", "manual", NOW, terms=door, parent="H1")
    assert not has_own_terms(session, handoff)
    assert not has_own_terms(session, replace(handoff, terms=Terms()))
    assert has_own_terms(session, replace(handoff, terms=Terms(("a roof",))))
    assert has_own_terms(session, replace(handoff, parent=""))
    failed = replace(session, done=(), retriable=parent)
    assert not has_own_terms(failed, handoff)


def test_only_what_a_text_does_not_say_is_added() -> None:
    """A text its user wrote anew has no place for a section; nothing is told twice."""
    terms = Terms(("a front door", "a roof"), priority="high", rollback="cas", questions=("why?",))
    packet = add_terms(PACKET, Handoff("H", "L", "ada", "bob", "manual", NOW, terms=terms))
    assert list_missing_terms(PACKET, "anything") == ()
    assert list_missing_terms(packet, "a front\n  door, a roof, high; cas: why?") == ()
    assert list_missing_terms(packet, "build a front door; cas knows why?") == (
        "expected of you, deliverables: a roof",
        "expected of you, priority: high",
    )
    assert list_missing_terms(packet, "")[-1] == "if it fails, questions: why?"
