"""What became of files that somebody names, in a real git repository."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent_relay.domain.values import TreeFile
from agent_relay.system.git.file_look_up import date_files, look_up_files
from agent_relay.system.git.tree_state import read_tree
from tests.support.handoffs import git

pytestmark = pytest.mark.size("test")


def _make(folder: Path) -> Path:
    """A repository with two commits, an edit, new files, one that is ignored and one that is gone."""
    git(str(folder), "init", "-q", "-b", "main")
    (folder / ".gitignore").write_text("*.log\n")
    for name in ("clean.py", "edited.py", "deleted.py"):
        (folder / name).write_text("one\n")
    git(str(folder), "add", ".")
    git(str(folder), "commit", "-qm", "first")
    (folder / "edited.py").write_text("one\ntwo\n")
    (folder / "deleted.py").unlink()
    (folder / "sub").mkdir()
    (folder / "sub" / "new.py").write_text("a\nb\nc")
    (folder / "blob").write_bytes(b"\0\1")
    (folder / "x.log").write_text("line\n")
    return folder


def _name(folder: Path, *names: str) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in names)


def test_each_file_is_clean_gone_counted_or_unknown(tmp_path: Path) -> None:
    """An ignored file is none of these: git does not say whether it changed."""
    folder = _make(tmp_path)
    names = ("clean.py", "edited.py", "deleted.py", "sub/new.py", "blob", "x.log", "never.py", "../else", ".")
    tree = look_up_files(read_tree(str(folder)), _name(folder, *names))
    assert (tree.clean, tree.gone) == (("clean.py",), ("never.py",))
    assert set(tree.files) == {
        TreeFile("edited.py", "modified", 1, 0),
        TreeFile("deleted.py", "deleted", 0, 1),
        TreeFile("sub/new.py", "untracked", 3, 0),
        TreeFile("blob", "untracked"),
    }


def test_a_link_on_the_way_is_followed_and_other_untracked_files_are_not_counted(tmp_path: Path) -> None:
    """An agent was started through a link; nobody asked for the rest."""
    folder = tmp_path / "real"
    folder.mkdir()
    _make(folder)
    (tmp_path / "link").symlink_to(folder)
    tree = look_up_files(
        read_tree(str(folder)), (str(tmp_path / "link" / "clean.py"), "relative.py", "/a\0b")
    )
    assert tree.clean == ("clean.py",)
    assert all(file.added is None for file in tree.files if file.status == "untracked")


def test_what_another_repository_holds_is_unknown(tmp_path: Path) -> None:
    """Without git nothing is looked up; a file of a submodule is neither clean nor gone."""
    tree = read_tree(str(tmp_path))
    assert look_up_files(tree, _name(tmp_path, "a")) == tree
    folder = _make(tmp_path)
    inner = folder / "module"
    inner.mkdir()
    git(str(inner), "init", "-q")
    (inner / "file").write_text("x\n")
    git(str(inner), "add", ".")
    git(str(inner), "commit", "-qm", "inner")
    git(str(folder), "-c", "advice.addEmbeddedRepo=false", "add", "module")
    tree = look_up_files(read_tree(str(folder)), _name(folder, "module/file", "clean.py"))
    assert (tree.clean, tree.gone) == (("clean.py",), ())


def test_changed_files_are_dated(tmp_path: Path) -> None:
    """A deleted one has no time of its own."""
    folder = _make(tmp_path)
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    os.utime(folder / "edited.py", (moment.timestamp(), moment.timestamp()))
    dated = {file.path: file.changed_at for file in date_files(read_tree(str(folder))).files}
    assert dated["edited.py"] == moment
    assert dated["deleted.py"] is None
    assert dated["blob"] is not None
    assert dated["blob"] > moment + timedelta(days=1)


@pytest.mark.parametrize(
    "odd",
    ["z" * 1_000_000, "a/" * 100_000 + "b", "half \ud800", "y" * 4000],
    ids=["longer than a command", "deep", "half a sign", "a long name"],
)
@pytest.mark.timeout(60)
def test_what_is_no_path_keeps_git_from_no_other(tmp_path: Path, odd: str) -> None:
    """Agents' records may hold anything where a path should be."""
    folder = _make(tmp_path)
    tree = look_up_files(read_tree(str(folder)), (*_name(folder, "clean.py", odd), f"/{odd}"))
    assert tree.clean == ("clean.py",)


def test_very_many_long_names_are_asked_for_as_far_as_a_command_holds_them(tmp_path: Path) -> None:
    """The newest count most."""
    folder = _make(tmp_path)
    names = (*(f"{'y' * 200}/" * 19 + str(at) for at in range(600)), "clean.py")
    tree = look_up_files(read_tree(str(folder)), _name(folder, *names))
    assert tree.clean == ("clean.py",)
    assert 200 < len(tree.gone) < 400
