"""An edit that is killed in the middle leaves the packet as it was or as it was meant, and no litter."""

import os
from pathlib import Path

import pytest

from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import find_edited, read_as_left, replace_file
from tests.store.small_packets import build, die_at


@pytest.mark.size("test")
def test_a_kill_at_any_step_of_an_edit_leaves_the_old_text_or_the_new(tmp_path: Path) -> None:
    """The successor reads one or the other, the next attempt succeeds, and the next packet tidies up."""
    resume = tmp_path / "resume"
    publish_packet(str(tmp_path), build(), "the text\n")
    text = resume / "0001-beta.md"
    for step in range(1, 50):
        ended = die_at(
            step,
            lambda: replace_file(str(text), b"mine\n", before=b"the text\n", is_picked_up=lambda: False),
        )
        assert text.read_bytes() in (b"the text\n", b"mine\n")
        assert find_edited(str(tmp_path), 1, "beta") in ("nothing", "text")
        text.write_bytes(b"the text\n")
        if ended == 0:
            break
    assert 4 < step < 49
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    assert [name for name in os.listdir(resume) if name.startswith(".tmp")] == []


def test_a_packet_is_read_as_its_user_left_it(tmp_path: Path) -> None:
    """Exports and later packets take both kinds of edit along; without its original, only the document's."""
    packet = build(constraints=[{"text": "no ladders"}, {"text": "use green"}])
    publish_packet(str(tmp_path), packet, "- no ladders\n- use green\n")
    resume = tmp_path / "resume"

    def left() -> list[str]:
        return [one.text for one in read_as_left(str(tmp_path), 1, "beta").constraints]

    assert left() == ["no ladders", "use green"]
    (resume / "0001-beta.md").write_text("- use green\n- be quick\n")
    assert left() == ["use green", "be quick"]
    (resume / ".0001-beta.published.json").unlink()
    assert left() == ["no ladders", "use green"]
