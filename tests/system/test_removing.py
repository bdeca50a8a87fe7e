"""What is to be removed is gone, and nothing beside it."""

import os
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.removal import remove_tree, sweep_unfinished


def test_a_link_is_removed_and_not_what_it_leads_to(tmp_path: Path) -> None:
    """A runner may leave a link to anywhere."""
    outside = tmp_path / "outside"
    outside.mkdir(0o500)
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "in").symlink_to(outside)
    remove_tree(str(tmp_path / "tree"))
    assert not (tmp_path / "tree").exists()
    (tmp_path / "link").symlink_to(outside)
    remove_tree(str(tmp_path / "link"))
    assert not (tmp_path / "link").is_symlink()
    assert outside.stat().st_mode & 0o777 == 0o500


def test_a_file_and_nothing_at_all_are_removed_too(tmp_path: Path) -> None:
    """A removal is repeated after a crash."""
    (tmp_path / "file").write_text("x")
    remove_tree(str(tmp_path / "file"))
    remove_tree(str(tmp_path / "file"))
    remove_tree(str(tmp_path / "file" / "below"))
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_named() -> None:
    """A clean that fails must say over what."""
    with pytest.raises(RelayError, match="cannot remove /proc/self/net: "):
        remove_tree("/proc/self/net")


def test_what_a_killed_process_began_to_write_is_gone_and_nothing_else(tmp_path: Path) -> None:
    """Each crash would leave one more file; a living writer's file is about to be renamed."""
    dead = 1 << 30
    names = [f".tmp-{dead}-0123456789ab", f".tmp-{os.getpid()}-0123456789ab", ".tmp-mine", "ledger.json"]
    for name in names:
        (tmp_path / name).write_text("x")
    sweep_unfinished(str(tmp_path))
    assert sorted(os.listdir(tmp_path)) == sorted(names[1:])
    sweep_unfinished(str(tmp_path / "not there"))
