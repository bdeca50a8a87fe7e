"""What an agent said by its tools is in the packet as its own words, with its next step and its files."""

import json
from datetime import UTC, datetime, timedelta

from agent_relay.domain.documents.packet import Quote, Reason, ResumePacket, TouchedFile
from agent_relay.domain.facts import Facts, Message
from agent_relay.domain.session import AgentNote
from agent_relay.domain.values import replace
from agent_relay.packet.airc import AircHandoff, render_airc, render_request
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.packet.handoff_facts import add_wishes
from agent_relay.packet.narrative import OwnDocument, add_note, place_narrative

AT = datetime(2026, 11, 26, 9, 0, tzinfo=UTC)
FILES = (
    json.dumps({"path": "a.py", "lines": "3-9", "note": "hinges"}),
    json.dumps({"path": "b.py"}),
    "no json",
    "[]",
    json.dumps({"path": 7, "lines": "1"}),
)
OCCASION = PacketContext("P", "S", 1, AT, "ann", "bob", Reason.MANUAL)
NOTE = AgentNote("L1", "the frame stands", AT, "hang the door", FILES)
BEFORE = Facts(
    "ann", transcript="t", conversation=(Message("user", "build it", 1, AT - timedelta(minutes=9)),)
)
AFTER = Facts(
    "ann", transcript="t", conversation=(Message("user", "paint it", 2, AT + timedelta(minutes=9)),)
)


def make(**fields: object) -> ResumePacket:
    return ResumePacket.model_validate(
        {
            "packet_id": "P",
            "session_id": "S",
            "sequence": 1,
            "created_at": AT,
            "previous_agent": "ann",
            "target_agent": "bob",
            "checkpoint_reason": Reason.MANUAL,
            **fields,
        }
    )


def test_its_next_step_and_its_files_count() -> None:
    """The agent knows best what it was about to do; a file's lines are kept for other tools, too."""
    packet = make(next_task="guessed", touched_files=(TouchedFile(path="a.py", status="modified", added=2),))
    told = add_wishes(packet, NOTE, BEFORE)
    assert told.next_task == "hang the door"
    document = told.model_dump(mode="json", exclude_none=True)
    assert document["touched_files"] == [
        {"path": "a.py", "status": "modified", "added": 2, "lines": "3-9", "note": "hinges"},
        {"path": "b.py", "status": "read"},
    ]
    sent = AircHandoff.model_validate(render_airc(told))
    assert [(file.path, file.lines) for file in sent.context.files] == [("a.py", "3-9"), ("b.py", None)]


def test_a_prompt_of_the_users_counts_more() -> None:
    """One that waits is the next step, and one that came later makes the agent's words old."""
    waiting = make(next_task="paint it", unprocessed_prompt=Quote(text="paint it"))
    assert add_wishes(waiting, NOTE, BEFORE).next_task == "paint it"
    assert add_wishes(make(next_task="paint it"), NOTE, AFTER) == make(next_task="paint it")


def test_a_note_stands_before_a_longer_document() -> None:
    """It is newer, and says less: neither takes the other's place, nor that of the record before it."""
    now = AT + timedelta(minutes=5)
    alone = add_note(OwnDocument(""), NOTE, agent="ann", facts=BEFORE, now=now, fresh=5)
    assert (
        alone.text == "(written by ann, 2026-11-26 09:00 UTC; 5 min before this packet)\n\nthe frame stands"
    )
    assert alone.source is not None
    assert alone.source.turn is None
    own = OwnDocument("## Goal\nA door.", place_narrative("ann", AT.isoformat(), BEFORE))
    both = add_note(own, NOTE, agent="ann", facts=BEFORE, now=now, fresh=5)
    assert both.text.endswith("the frame stands\n\n## Goal\nA door.")
    assert both.source == own.source
    assert add_note(own, NOTE, agent="ann", facts=AFTER, now=now, fresh=0) == own


def test_a_note_stays_when_the_conversation_is_compacted_after_it() -> None:
    """The agent wrote it for its successor; a summary its program made for itself is another thing."""
    compacted = replace(
        BEFORE, summary="We built a frame.", summary_turn=1, summary_at=AT + timedelta(minutes=2)
    )
    packet = build_packet(
        compacted, replace(OCCASION, at=AT + timedelta(minutes=5)), note=NOTE, fresh_prompts=2
    )
    assert packet.narrative is not None
    assert packet.narrative.count("the frame stands") == packet.narrative.count("We built a frame.") == 1
    assert packet.decisions == ()
    assert packet.narrative_source is not None
    assert packet.narrative_source.agent == "ann"


def test_a_request_is_read_by_people() -> None:
    """Every part that was given, and no empty heading."""
    given = {
        "to": "bob",
        "task": {"title": "finish the door", "intent": "it must close", "priority": "high"},
        "context": {
            "current_state": "the frame stands",
            "next_step": "hang it",
            "files": [{"path": "a.py", "lines": "3-9", "note": "hinges"}],
            "blockers": ["no screws"],
        },
    }
    assert render_request(AircHandoff.model_validate(given)) == (
        "HANDOFF\nto bob, priority high\n\nTASK\nfinish the door\nit must close\n\n"
        "STATE\nthe frame stands\n\nNEXT STEP\nhang it\n\nFILES\n- a.py:3-9 — hinges\n\nBLOCKERS\n- no screws"
    )
