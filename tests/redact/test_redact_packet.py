"""No string of a packet keeps a secret, and the packet says what it lost."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.packet import Redaction, ResumePacket
from agent_relay.domain.documents.packet_json import render_document, render_json
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.redact.packet import redact_packet

KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"


def build(**more: object) -> ResumePacket:
    """A packet with these fields."""
    return ResumePacket.model_validate(
        {
            "packet_id": "P",
            "session_id": "01JD0000000000000000000000",
            "sequence": 1,
            "created_at": datetime(2026, 1, 1, tzinfo=UTC),
            "previous_agent": "alpha",
            "target_agent": "beta",
            "checkpoint_reason": "manual",
            **more,
        }
    )


def test_every_string_at_every_depth_is_redacted() -> None:
    """Fields of newer versions and dictionary keys included: whatever is written may be shared."""
    packet = build(
        task=f"use {KEY}",
        constraints=[{"text": KEY, "source": {"agent": "alpha", "transcript": f"/var/{KEY}"}}],
        attempts=[{"summary": "x", "outcome": KEY}],
        touched_files=[{"path": f"{KEY}.txt", "status": "read"}],
        git={"root": "/r", "note": KEY},
        limit={"scope": "account", "evidence": KEY},
        expectations={"deep": [{"er": [KEY]}], KEY: 1},
        of_the_future={"list": [KEY, 1, None, True]},
        narrative=KEY,
    )
    redacted = redact_packet(packet)
    assert KEY not in render_json(render_document(redacted))
    assert redacted.redactions == (Redaction(kind="anthropic-key", count=11),)
    assert redacted.task == "use [redacted: anthropic-key]"


def test_known_values_and_control_characters_go_too() -> None:
    """A colour code must not hide a secret, nor reach a terminal."""
    packet = build(task="pass \x1b[31mswordfish99\x1b[0m on", next_task="nothing")
    redacted = redact_packet(packet, known=frozenset({"swordfish99"}))
    assert redacted.task == "pass [redacted: known-secret] on"
    assert redacted.next_task == "nothing"


def test_a_value_is_judged_together_with_its_key() -> None:
    """`{"password": …}` in a field we do not know is a secret only because of its name."""
    redacted = redact_packet(build(settings={"password": "x9!fjK2lp0", "user": "x9!fjK2lp0"}))
    assert redacted.model_extra == {"settings": {"password": "[redacted: password]", "user": "x9!fjK2lp0"}}


def test_redacting_again_keeps_the_counts() -> None:
    """A packet rendered anew after an edit still says what it lost."""
    once = redact_packet(build(task=KEY))
    assert redact_packet(once) == once


def test_what_the_facts_lost_before_is_counted() -> None:
    """A packet is built of facts without secrets, and says so all the same."""
    packet = build(task="use [redacted: jwt] and [redacted: jwt]", narrative=KEY)
    removed = (Redaction(kind="anthropic-key", count=1), Redaction(kind="jwt", count=2))
    assert redact_packet(packet).redactions == removed


def test_a_clean_packet_stays_equal() -> None:
    """Nothing is touched without need."""
    packet = build(task="make it work", plan=[{"text": "step"}], future=[1, {"a": None}])
    assert redact_packet(packet) == packet


def test_absurd_nesting_is_refused() -> None:
    """A hostile document must not overflow the stack."""
    nested: object = "x"
    for _ in range(150):
        nested = [nested]
    with pytest.raises(UntrustedDataError, match="nested too deeply"):
        redact_packet(build(future=nested))
