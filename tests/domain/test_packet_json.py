"""A packet as JSON: what says nothing is left out, what cannot be a packet is refused with its field."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import (
    fingerprint,
    parse_document,
    parse_packet,
    render_document,
    render_json,
)
from agent_relay.domain.errors import UntrustedDataError

LEAST: dict[str, object] = {
    "schema": "agent-relay/resume-packet",
    "version": 1,
    "packet_id": "P",
    "session_id": "S",
    "sequence": 1,
    "created_at": "2026-01-01T00:00:00Z",
    "previous_agent": "alpha",
    "target_agent": "beta",
    "checkpoint_reason": "manual",
}


def build(**more: object) -> ResumePacket:
    """The least packet there is, with these fields."""
    return ResumePacket.model_validate({**LEAST, **more})


def test_what_is_unknown_is_left_out() -> None:
    """Absent means unknown: a reader must not meet empty fields and take them for facts."""
    assert render_document(build(task="", plan=[], validation_state={})) == LEAST
    assert parse_packet(render_document(build())) == build()


def test_a_required_field_stays_even_where_it_is_empty() -> None:
    """A document we write we can read again: a repository somebody only named has no root."""
    packet = build(git={"root": "", "branch": "main"}, constraints=[{"text": ""}])
    assert parse_packet(render_document(packet)) == packet


def test_known_fields_keep_their_places_and_lose_their_empty_parts() -> None:
    """The same holds inside of entries."""
    document = render_document(
        build(
            plan=[{"text": "go", "status": "pending"}],
            unprocessed_prompt={
                "text": "on",
                "source": {"agent": "alpha", "at": datetime(2026, 1, 1, tzinfo=UTC)},
            },
            later_field={"kept": [1]},
        )
    )
    assert document["plan"] == [{"text": "go", "status": "pending"}]
    assert document["unprocessed_prompt"] == {
        "text": "on",
        "source": {"agent": "alpha", "at": "2026-01-01T00:00:00Z"},
    }
    assert document["later_field"] == {"kept": [1]}


def test_half_characters_are_written_as_escapes() -> None:
    """A transcript torn inside an emoji must not make a packet that cannot be written."""
    document = render_document(build(task="a\ud83d"))
    assert document["task"] == "a\\ud83d"
    assert render_json(document).encode()


def test_the_fingerprint_does_not_depend_on_the_layout() -> None:
    """An editor that sorts or indents again has changed nothing."""
    document = render_document(build(task="x"))
    assert fingerprint(document) == fingerprint(dict(reversed(document.items())))
    assert fingerprint(document) != fingerprint({**document, "task": "y"})
    assert fingerprint({"a": "é"}) == "57e512a1ff02f75e939e93d2196b8d29ad3721b70ce25a601402d26410f453a2"


@pytest.mark.parametrize("data", ["{", b"\xff", "[" * 100_000])
def test_what_is_no_json_is_told_with_its_name(data: bytes | str) -> None:
    """One sentence, and which file it is about."""
    with pytest.raises(UntrustedDataError, match=r"0001-beta\.json is not valid JSON"):
        parse_document(data, name="0001-beta.json")
    with pytest.raises(UntrustedDataError, match="is not a JSON object"):
        parse_document("[]")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"schema": "somebody/else"}, "its schema is not agent-relay/resume-packet"),
        ({"version": 2}, "has version 2, this agent-relay reads up to 1"),
        ({"version": "one"}, "not a valid resume packet: version"),
        ({"sequence": "first"}, r"not a valid resume packet: sequence: "),
        ({"plan": [{"status": "done"}]}, r"plan\.0\.text"),
    ],
)
def test_a_document_that_is_no_packet_is_told_with_its_field(
    change: dict[str, object], complaint: str
) -> None:
    """Whoever edited it must know where to look; its contents are nobody's business."""
    with pytest.raises(UntrustedDataError, match=complaint):
        parse_packet({**LEAST, **change})


@pytest.mark.parametrize("opening", ["[", '{"k":'])
def test_absurd_nesting_is_refused(opening: str) -> None:
    """Whatever walks the packet later would end in a crash report instead of a sentence."""
    text = opening * 200 + "1" + {"[": "]"}.get(opening, "}") * 200
    later = parse_document(f'{{"later": {text}}}')
    with pytest.raises(UntrustedDataError, match="nested too deeply"):
        parse_packet({**LEAST, **later})
    assert parse_packet({**LEAST, "later": [[[["fine"]]]]}).packet_id == "P"
