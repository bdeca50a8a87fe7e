"""The handoff document an agent wrote is kept until a packet takes it along, whatever becomes of the file."""

import json
from pathlib import Path

import pytest

from agent_relay.store.packets import (
    DigestDocument,
    NarrativeDocument,
    read_digest,
    read_narrative,
    write_digest,
    write_narrative,
)

KEPT = NarrativeDocument(
    "L1", "ann", "2026-11-22 09:00 UTC", "the door", "## Goal", "2026-11-22T09:00:00+00:00"
)


def test_a_kept_document_is_read_back_by_its_own_leg_alone(tmp_path: Path) -> None:
    """Another leg's words are another conversation's."""
    write_narrative(str(tmp_path), KEPT)
    assert read_narrative(str(tmp_path), "L1") == KEPT
    assert read_narrative(str(tmp_path), "L2") is None
    assert read_narrative(str(tmp_path / "nowhere"), "L1") is None


def test_a_document_of_an_older_version_has_no_moment(tmp_path: Path) -> None:
    """It is taken along without an age."""
    old = {"leg": "L1", "agent": "ann", "at": "2026-11-22 09:00 UTC", "focus": "", "text": "## Goal"}
    (tmp_path / "narrative.json").write_text(json.dumps(old))
    found = read_narrative(str(tmp_path), "L1")
    assert found is not None
    assert (found.text, found.moment) == ("## Goal", "")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"leg": "L1"}',
        '{"leg": "L1", "at": "x", "text": 7}',
        '{"leg": "L1", "at": "", "text": "## Goal"}',
        '{"leg": "L1", "at": "x", "text": "## Goal", "moment": 7}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_no_document(tmp_path: Path, text: str) -> None:
    """The packet does without; a handoff must not stop for it."""
    (tmp_path / "narrative.json").write_text(text)
    assert read_narrative(str(tmp_path), "L1") is None


def test_what_a_successor_wrote_is_of_its_handoff_alone(tmp_path: Path) -> None:
    """The next handoff has another record."""
    kept = DigestDocument("H1", "bob", "2026-11-22 09:00 UTC", "2026-11-22T09:00:00+00:00", "## Goal")
    assert read_digest(str(tmp_path), "H1") is None
    write_digest(str(tmp_path), kept)
    assert read_digest(str(tmp_path), "H1") == kept
    assert read_digest(str(tmp_path), "H2") is None


@pytest.mark.parametrize("text", ["{", "[]", '{"handoff": "H1"}', '{"handoff": "H1", "text": 7}'])
def test_a_spoilt_document_of_a_successor_is_none(tmp_path: Path, text: str) -> None:
    """The packet goes without it."""
    (tmp_path / "digest.json").write_text(text)
    assert read_digest(str(tmp_path), "H1") is None
