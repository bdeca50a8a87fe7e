"""The file of checkpoints: whole lines only, bounded, and thinned from its beginning."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import CheckpointFacts, CommandRun, Facts, Message, RecordCursor
from agent_relay.store.checkpoints import (
    MOST_BYTES,
    add_checkpoint,
    find_newest,
    find_room,
    read_checkpoints,
    render_checkpoint,
    replace_checkpoints,
)

BEGAN = datetime(2026, 11, 26, 9, tzinfo=UTC)


def make(turn: int, answer: str = "done", *, native_id: str = "n1") -> CheckpointFacts:
    at = BEGAN + timedelta(minutes=turn)
    said = (Message("user", f"prompt {turn}", turn, at), Message("assistant", answer, turn, at))
    ran = (CommandRun("make test", "output " * 200, 0, turn, at),)
    facts = Facts("demo", native_id=native_id, conversation=said, commands=ran, ended_at=at)
    return CheckpointFacts("leg", "demo", native_id, at, RecordCursor("/r.jsonl", turn), turn, facts)


def keep(folder: str, kept: CheckpointFacts) -> None:
    line = render_checkpoint(kept)
    whole = find_room(folder, line)
    if whole is None:
        add_checkpoint(folder, line)
    else:
        replace_checkpoints(folder, whole)


def read(folder: str, native_id: str = "n1") -> list[CheckpointFacts]:
    return read_checkpoints(folder, leg="leg", agent="demo", native_id=native_id)


def test_what_was_added_is_read_in_its_order(tmp_path: Path) -> None:
    """Of each conversation its own, the newest without its facts, too."""
    folder = str(tmp_path)
    for kept in (make(1), make(1, native_id="other"), make(2)):
        keep(folder, kept)
    assert [one.turns for one in read(folder)] == [1, 2]
    newest = find_newest(folder, leg="leg", agent="demo", native_id="n1")
    assert newest is not None
    assert newest.cursor == RecordCursor("/r.jsonl", 2)
    assert find_newest(folder, leg="leg", agent="codex", native_id="n1") is None


def test_the_file_never_exceeds_its_bound_and_old_checkpoints_give_way(tmp_path: Path) -> None:
    """All prompts stay as long as there is room for them; the newest turns stay whole."""
    folder, path = str(tmp_path), tmp_path / "checkpoints.jsonl"
    for turn in range(1, 200):
        keep(folder, make(turn, "word " * 10_000))
        assert path.stat().st_size <= MOST_BYTES
    kept = read(folder)
    assert [one.turns for one in kept] == list(range(1, 200))
    assert len(kept[0].facts.conversation[1].text) < 3000
    assert kept[0].facts.conversation[0].text == "prompt 1"
    assert len(kept[-1].facts.conversation[1].text) == 50_000


def test_a_disk_that_refuses_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A link in its place is not followed, and what it leads to is not touched."""
    folder, other = str(tmp_path), tmp_path / "other"
    other.write_bytes(b"theirs")
    os.symlink(other, tmp_path / "checkpoints.jsonl")
    with pytest.raises(RelayError, match="cannot write"):
        add_checkpoint(folder, render_checkpoint(make(1)))
    assert other.read_bytes() == b"theirs"


@pytest.mark.parametrize("damage", [b'{"leg":', b"\0\0\0\n", b"[]\n", b'{"leg":"leg","agent":"demo"}\n'])
def test_lines_that_are_damaged_cost_themselves_only(tmp_path: Path, damage: bytes) -> None:
    """A crash, or a hand, may leave anything in it."""
    folder, path = str(tmp_path), tmp_path / "checkpoints.jsonl"
    keep(folder, make(1))
    with path.open("ab") as file:
        file.write(damage)
    keep(folder, make(2))
    assert [one.turns for one in read(folder)] == [1, 2]
