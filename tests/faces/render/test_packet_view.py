"""What a packet tells fits a narrow terminal, and no word of it is cut where a blank is near."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.packet import Exchange, GitState, Provenance, Quote, Reason, ResumePacket
from agent_relay.domain.text.plain import count_columns
from agent_relay.faces.render.packet_view import render_sections, wrap_line

WORDS = "formatting everything underneath the documentation before somebody notices anything"
SOURCE = Provenance(agent="claude", turn=4, transcript="/home/ada/.claude/one.jsonl:120")
PACKET = ResumePacket(
    packet_id="01M7YQ8VZSDCE210CV2GR5DXVY",
    session_id="01M7YQ8VEGM236HDJTCD26BQEP",
    sequence=1,
    created_at=datetime(2026, 11, 21, tzinfo=UTC),
    previous_agent="claude",
    target_agent="codex",
    checkpoint_reason=Reason.MANUAL,
    task=f"{WORDS} {WORDS}",
    constraints=(Quote(text=f"never {WORDS}", source=SOURCE),),
    exchanges=(Exchange(said=WORDS, on=f"{WORDS}?", told=WORDS, is_settled=True, source=SOURCE),),
    git=GitState(root="/p", branch="main", head="94bb8b61b0c3", fingerprint="6b1c"),
    touched_files=(),
)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    """A terminal breaks what is wider anywhere; the files' paths are there to be copied, and stay whole."""
    lines = render_sections(PACKET, width=width, changes=[f"the branch was {WORDS}"])
    shown = lines[: lines.index("Sources")]
    assert [line for line in shown if count_columns(line) > width] == []


@pytest.mark.parametrize("width", range(40, 81, 3))
def test_what_is_cut_ends_with_a_whole_word(width: int) -> None:
    """Half a word is read as another."""
    whole = {*WORDS.split(), "in", "answer", "to:", "claude:", "never", f"“{WORDS.split(maxsplit=1)[0]}", "·"}
    cut = [line for line in render_sections(PACKET, width=width) if line.endswith("…")]
    assert [line for line in cut if line.removesuffix("…").split()[-1] not in whole] == []
    assert cut


def test_a_line_of_the_head_is_told_whole_on_several_lines() -> None:
    """Who hands over to whom is nothing to leave out."""
    line = "Packet 1: claude → codex  01M7YQ8VZSDCE210CV2GR5DXVY"
    assert wrap_line(line, 80) == [line]
    assert wrap_line(line, 40) == ["Packet 1: claude → codex", "  01M7YQ8VZSDCE210CV2GR5DXVY"]
