"""A packet is published whole or not at all, and delivered as its user left it."""

import errno
import fcntl
import json
import os
import stat
from pathlib import Path

import pytest

from agent_relay.domain.documents.packet import Attempt
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import list_packets, read_packet
from tests.store.small_packets import build, die_at


def names(folder: Path) -> list[str]:
    """What lies in the resume folder, but for what keeps the originals."""
    return sorted(name for name in os.listdir(folder / "resume") if not name.endswith(".published.json"))


def test_publishing_makes_document_text_and_link_visible(tmp_path: Path) -> None:
    """Three names, private, the link relative so that a moved repository keeps working."""
    published = publish_packet(str(tmp_path), build(7), "hello\n")
    assert names(tmp_path) == ["0007-beta.json", "0007-beta.md", "beta.md"]
    assert (published.json_path, published.text_path) == ("resume/0007-beta.json", "resume/0007-beta.md")
    assert os.readlink(tmp_path / "resume" / "beta.md") == "0007-beta.md"
    assert (tmp_path / "resume" / "beta.md").read_text() == "hello\n"
    assert stat.S_IMODE((tmp_path / "resume").stat().st_mode) == 0o700
    for name in ("0007-beta.json", "0007-beta.md"):
        assert stat.S_IMODE((tmp_path / "resume" / name).stat().st_mode) == 0o600
    assert not published.again


def test_what_was_published_is_read_back_equal(tmp_path: Path) -> None:
    """Fields nobody knows yet included; `published` is the store's own."""
    packet = build(attempts=(Attempt(summary="x"),), from_the_future={"a": None, "b": [1]})
    publish_packet(str(tmp_path), packet, "t")
    read = read_packet(str(tmp_path / "resume" / "0001-beta.json"))
    assert read.model_extra is not None
    assert read.model_extra["from_the_future"] == {"a": None, "b": [1]}
    extra = read.model_extra.pop("published")
    assert set(extra) == {"document", "text"}
    assert read == packet


def test_unknown_is_left_out_of_the_document(tmp_path: Path) -> None:
    """Absent means unknown: nothing is invented, not even a null."""
    publish_packet(str(tmp_path), build(git={"root": "/r"}), "t")
    document = json.loads((tmp_path / "resume" / "0001-beta.json").read_text())
    assert "next_task" not in document
    assert "blockers" not in document
    assert document["git"] == {"root": "/r"}
    assert document["schema"] == "agent-relay/resume-packet"
    assert document["version"] == 1


def test_publishing_again_changes_nothing(tmp_path: Path) -> None:
    """After a crash the saga repeats the step; the user's edit in between survives it."""
    first = publish_packet(str(tmp_path), build(), "text")
    (tmp_path / "resume" / "0001-beta.md").write_text("edited")
    second = publish_packet(str(tmp_path), build(task="another wording"), "other text")
    assert second.again
    assert second.fingerprint == first.fingerprint
    assert (tmp_path / "resume" / "0001-beta.md").read_text() == "edited"


def test_a_number_is_never_given_to_another_packet(tmp_path: Path) -> None:
    """Two daemons, or a copied session folder: the packet that was there first stays."""
    publish_packet(str(tmp_path), build(packet_id="P1"), "first")
    before = (tmp_path / "resume" / "0001-beta.json").read_bytes()
    with pytest.raises(UntrustedDataError, match="packet number 1 is taken already"):
        publish_packet(str(tmp_path), build(packet_id="P2"), "second")
    with pytest.raises(UntrustedDataError, match="packet number 1 is taken already"):
        publish_packet(str(tmp_path), build(packet_id="P1", target="gamma"), "second")
    assert (tmp_path / "resume" / "0001-beta.json").read_bytes() == before
    assert names(tmp_path) == ["0001-beta.json", "0001-beta.md", "beta.md"]


def test_the_link_follows_the_latest_packet_of_its_target(tmp_path: Path) -> None:
    """Even when an older one is finished late."""
    publish_packet(str(tmp_path), build(3, packet_id="P3"), "three")
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    assert (tmp_path / "resume" / "beta.md").read_text() == "three"
    publish_packet(str(tmp_path), build(4, packet_id="P4", target="gamma"), "four")
    publish_packet(str(tmp_path), build(5, packet_id="P5"), "five")
    assert (tmp_path / "resume" / "beta.md").read_text() == "five"
    assert (tmp_path / "resume" / "gamma.md").read_text() == "four"
    assert [row[:2] for row in list_packets(str(tmp_path))] == [
        (2, "beta"), (3, "beta"), (4, "gamma"), (5, "beta"),
    ]  # fmt: skip


def test_leftovers_of_a_crash_are_swept_and_its_packet_finished(tmp_path: Path) -> None:
    """Killed between the two renames: the text is there, the document is not, the link is old."""
    publish_packet(str(tmp_path), build(1, packet_id="P1"), "one")
    resume = tmp_path / "resume"
    (resume / "0002-beta.md").write_text("half an attempt")
    (resume / ".tmp-publish-0123-0002-beta.json").write_text("{")
    (resume / ".tmp-99-abcdef").write_text("an edit cut short")
    assert [row[0] for row in list_packets(str(tmp_path))] == [1]
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    assert names(tmp_path) == ["0001-beta.json", "0001-beta.md", "0002-beta.json", "0002-beta.md", "beta.md"]
    assert (resume / "beta.md").read_text() == "two"


def test_a_crash_before_the_link_is_finished_by_the_repeat(tmp_path: Path) -> None:
    """The document is visible, so only the link is missing."""
    publish_packet(str(tmp_path), build(), "one")
    (tmp_path / "resume" / "beta.md").unlink()
    assert publish_packet(str(tmp_path), build(), "one").again
    assert (tmp_path / "resume" / "beta.md").read_text() == "one"


@pytest.mark.size("test")
def test_a_kill_at_any_step_leaves_the_old_state_or_the_new(tmp_path: Path) -> None:
    """Every system call of the publication is a place to die; the repeat always succeeds and is clean."""
    resume = tmp_path / "resume"
    publish_packet(str(tmp_path), build(1, packet_id="P1"), "one")
    for step in range(1, 100):
        ended = die_at(step, lambda: publish_packet(str(tmp_path), build(2, packet_id="P2"), "two"))
        assert read_packet(str(resume / "0001-beta.json")).packet_id == "P1"
        assert (resume / "beta.md").read_text() in ("one", "two")
        if "0002-beta.json" in names(tmp_path):
            assert read_packet(str(resume / "0002-beta.json")).packet_id == "P2"
            assert (resume / "0002-beta.md").read_text() == "two"
        publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
        assert names(tmp_path) == [
            "0001-beta.json", "0001-beta.md", "0002-beta.json", "0002-beta.md", "beta.md",
        ]  # fmt: skip
        if ended == 0:
            break
        for name in ("0002-beta.json", "0002-beta.md", "beta.md"):
            (resume / name).unlink()
        (resume / "beta.md").symlink_to("0001-beta.md")
    assert 10 < step < 99


def test_a_publication_costs_few_syncs_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync is 1 to 20 ms on laptops; the bar is five, and four files."""
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (synced.append(handle), real(handle))[1])
    publish_packet(str(tmp_path), build(), "text")
    assert len(synced) == 5
    assert len(os.listdir(tmp_path / "resume")) == 4
    synced.clear()
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "text")
    assert len(synced) == 4


@pytest.mark.parametrize("call", ["write", "fsync", "rename", "symlink"])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_full_disk_leaves_the_old_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, at: int
) -> None:
    """Whatever call meets ENOSPC, no half packet and no litter stay behind."""
    publish_packet(str(tmp_path), build(1, packet_id="P1"), "one")
    before = names(tmp_path)
    seen = 0
    real = getattr(os, call)

    def full(*arguments: object) -> object:
        nonlocal seen
        seen += 1
        if seen == at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments)

    monkeypatch.setattr(os, call, full)
    if call == "symlink" and at > 1:
        publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
        return
    with pytest.raises(RelayError, match="No space left on device"):
        publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    monkeypatch.undo()
    after = names(tmp_path)
    assert [name for name in os.listdir(tmp_path / "resume") if name.startswith(".tmp")] == []
    if "0002-beta.json" in after:
        assert read_packet(str(tmp_path / "resume" / "0002-beta.json")).packet_id == "P2"
    else:
        assert after == before
    assert (tmp_path / "resume" / "beta.md").read_text() in ("one", "two")
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    assert (tmp_path / "resume" / "beta.md").read_text() == "two"


def test_a_file_system_without_symlinks_does_without_the_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A FAT stick refuses links; the numbered names are the truth."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "symlink", refuse)
    publish_packet(str(tmp_path), build(), "text")
    assert names(tmp_path) == ["0001-beta.json", "0001-beta.md"]


def test_a_target_cannot_lead_elsewhere(tmp_path: Path) -> None:
    """The name becomes part of a path."""
    with pytest.raises(UntrustedDataError):
        publish_packet(str(tmp_path), build(target="../../x"), "text")


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ("[" * 100_000, "not valid JSON"),
        ("{}", "its schema is not"),
        ('{"schema": "agent-relay/resume-packet", "version": 2}', "has version 2"),
        ('{"schema": "agent-relay/resume-packet", "version": 0}', "not a valid resume packet"),
        ('{"schema": "agent-relay/resume-packet", "version": "x"}', "not a valid resume packet"),
        ('{"schema": "agent-relay/resume-packet", "version": 1}', "packet_id: Field required"),
    ],
)
def test_what_is_no_packet_is_refused_with_a_reason(tmp_path: Path, document: str, message: str) -> None:
    """Torn, foreign and newer documents are told apart; no contents appear in the message."""
    (tmp_path / "x.json").write_text(document)
    with pytest.raises(UntrustedDataError, match=message):
        read_packet(str(tmp_path / "x.json"))


def test_a_missing_packet_is_refused(tmp_path: Path) -> None:
    """Somebody deleted it."""
    with pytest.raises(UntrustedDataError, match="there is no packet at"):
        read_packet(str(tmp_path / "x.json"))
    assert list_packets(str(tmp_path)) == ()


def test_a_file_system_without_locks_still_publishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Then nothing is swept, because somebody else could be writing."""

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    publish_packet(str(tmp_path), build(1, packet_id="P1"), "one")
    (tmp_path / "resume" / ".tmp-publish-00-x").write_text("of another")
    monkeypatch.setattr(fcntl, "flock", refuse)
    publish_packet(str(tmp_path), build(2, packet_id="P2"), "two")
    assert ".tmp-publish-00-x" in names(tmp_path)
    assert (tmp_path / "resume" / "beta.md").read_text() == "two"
