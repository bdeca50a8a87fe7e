"""What is delivered is what the user left, in the text or in the document."""

import json
from pathlib import Path

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import (
    DeliveryText,
    Original,
    find_edited,
    list_packets,
    read_delivery_text,
    read_original,
    replace_file,
)
from tests.store.small_packets import build


def show(packet: ResumePacket) -> str:
    """A stand-in for the real rendering."""
    return f"task: {packet.task}\n"


def test_an_untouched_text_is_delivered_as_it_is(tmp_path: Path) -> None:
    """The ordinary case."""
    publish_packet(str(tmp_path), build(), "the text\n")
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show) == DeliveryText("the text\n", "nothing")


def test_what_the_user_deleted_from_the_text_is_not_delivered(tmp_path: Path) -> None:
    """The promise of the packet: the successor reads what the user left."""
    publish_packet(str(tmp_path), build(), "keep\nsecret plan\n")
    (tmp_path / "resume" / "0001-beta.md").write_text("keep\r\n\x1b[201~")
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show) == DeliveryText("keep\n", "text")


def test_an_edited_document_is_rendered_anew(tmp_path: Path) -> None:
    """Deleting from the JSON counts as much; re-indenting it does not count as an edit."""
    publish_packet(str(tmp_path), build(), "task: make it work\n")
    path = tmp_path / "resume" / "0001-beta.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document, sort_keys=True))
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show).edited == "nothing"
    document["task"] = "something else"
    path.write_text(json.dumps(document))
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show) == DeliveryText(
        "task: something else\n", "document"
    )


def test_a_document_rewritten_without_our_fingerprints_still_says_what_was_edited(tmp_path: Path) -> None:
    """Programs drop fields they do not know; the text must not pass for the edited part then."""
    publish_packet(str(tmp_path), build(), "task: make it work\n")
    path = tmp_path / "resume" / "0001-beta.json"
    document = json.loads(path.read_text())
    del document["published"], document["task"]
    path.write_text(json.dumps(document))
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show) == DeliveryText(
        "task: None\n", "document"
    )


def test_what_either_file_lost_is_not_delivered(tmp_path: Path) -> None:
    """Both were edited, each in another place: neither deletion may be undone by the other file."""

    def write(packet: ResumePacket) -> str:
        return "".join(f"- {one.text}\n" for one in packet.constraints)

    packet = build(constraints=[{"text": word} for word in ("one", "two", "three")])
    publish_packet(str(tmp_path), packet, write(packet))
    path = tmp_path / "resume" / "0001-beta.json"
    document = json.loads(path.read_text())
    del document["constraints"][0]
    path.write_text(json.dumps(document))
    (tmp_path / "resume" / "0001-beta.md").write_text("- one\n- two\nmine\n")
    assert read_delivery_text(str(tmp_path), 1, "beta", render=write) == DeliveryText("- two\nmine\n", "both")


def test_the_original_can_be_had_after_any_edit(tmp_path: Path) -> None:
    """An edit can be shown and taken back; what is no longer what was published is not passed off as it."""
    publish_packet(str(tmp_path), build(), "the text\n")
    resume = tmp_path / "resume"
    document = json.loads((resume / "0001-beta.json").read_text())
    del document["published"]
    (resume / "0001-beta.md").write_text("other\n")
    assert read_original(str(tmp_path), 1, "beta") == Original(document, "the text\n")
    assert find_edited(str(tmp_path), 1, "beta") == "text"
    kept = resume / ".0001-beta.published.json"
    whole = kept.read_text()
    for broken in (whole.replace("the text", "another"), "[]", '{"document": 1, "text": ""}', "{"):
        kept.write_text(broken)
        assert read_original(str(tmp_path), 1, "beta") is None
        assert find_edited(str(tmp_path), 1, "beta") == "text"
    kept.unlink()
    assert read_original(str(tmp_path), 1, "beta") is None


def test_an_edit_is_placed_whole_or_refused(tmp_path: Path) -> None:
    """Picked up or changed meanwhile: nobody would read it, or somebody's words would be lost."""
    publish_packet(str(tmp_path), build(), "the text\n")
    path = tmp_path / "resume" / "0001-beta.md"
    replace_file(str(path), b"mine", before=b"the text\n", is_picked_up=lambda: False)
    assert path.read_bytes() == b"mine"
    with pytest.raises(RelayError, match=r"0001-beta\.md was picked up meanwhile"):
        replace_file(str(path), b"late", before=b"mine", is_picked_up=lambda: True)
    with pytest.raises(RelayError, match=r"0001-beta\.md was changed by another program"):
        replace_file(str(path), b"late", before=b"the text\n", is_picked_up=lambda: False)
    with pytest.raises(RelayError, match="would be larger than"):
        replace_file(str(path), b"x" * ((16 << 20) + 1), before=b"mine", is_picked_up=lambda: False)
    assert path.read_bytes() == b"mine"
    path.unlink()
    with pytest.raises(RelayError, match="was deleted"):
        replace_file(str(path), b"late", before=b"mine", is_picked_up=lambda: False)
    with pytest.raises(RelayError, match="was deleted"):
        replace_file(f"{tmp_path}/none/x.md", b"late", before=b"mine", is_picked_up=lambda: False)
    with pytest.raises(RelayError, match="cannot write"):
        replace_file(f"{path.parent}/0001-beta.json/x.md", b"", before=b"", is_picked_up=lambda: False)


def test_edits_in_both_are_reported_and_the_text_counts(tmp_path: Path) -> None:
    """Nobody can merge them; the text is literally what the successor reads."""
    publish_packet(str(tmp_path), build(), "text")
    path = tmp_path / "resume" / "0001-beta.json"
    path.write_text(path.read_text().replace("make it work", "other"))
    (tmp_path / "resume" / "0001-beta.md").write_text("mine")
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show) == DeliveryText("mine", "both")


def test_a_deleted_text_is_rendered_from_the_document(tmp_path: Path) -> None:
    """Removing the file is not a way to deliver nothing by accident."""
    publish_packet(str(tmp_path), build(), "text")
    (tmp_path / "resume" / "0001-beta.md").unlink()
    assert read_delivery_text(str(tmp_path), 1, "beta", render=show).text == "task: make it work\n"


def test_a_packet_from_the_future_is_not_delivered(tmp_path: Path) -> None:
    """A downgraded program stops with a clear error instead of losing fields."""
    publish_packet(str(tmp_path), build(), "text")
    path = tmp_path / "resume" / "0001-beta.json"
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(UntrustedDataError, match="has version 9"):
        read_delivery_text(str(tmp_path), 1, "beta", render=show)


def test_packets_in_a_place_that_is_no_folder_are_an_error(tmp_path: Path) -> None:
    """One sentence, not a traceback."""
    (tmp_path / "resume").write_text("")
    with pytest.raises(RelayError, match="cannot read the packets in"):
        list_packets(str(tmp_path))
    with pytest.raises(RelayError, match="cannot read the packets in"):
        read_delivery_text(str(tmp_path), 1, "beta", render=show)
    with pytest.raises(UntrustedDataError, match="there is no packet at"):
        read_delivery_text(f"{tmp_path}/none", 1, "beta", render=show)
