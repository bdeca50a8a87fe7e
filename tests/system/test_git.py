"""The working tree is read truthfully in every state a repository can ordinarily be in."""

import subprocess
from pathlib import Path

import pytest

from agent_relay.domain.values import TreeFile
from agent_relay.system.git.tree_state import find_root, read_tree
from tests.system.repositories import Git, by_path

pytestmark = pytest.mark.size("test")


def test_a_clean_tree_has_branch_head_and_nothing_changed(repository: Path, git: Git) -> None:
    """The packet names the exact commit the successor starts from."""
    tree = read_tree(str(repository))
    assert tree.is_git
    assert tree.root == str(repository)
    assert tree.branch == "main"
    assert tree.head == git(repository, "rev-parse", "HEAD")
    assert not tree.dirty
    assert tree.files == ()
    assert tree.note == ""
    assert len(tree.fingerprint) == 64


def test_changes_carry_their_status_and_line_counts(repository: Path, git: Git) -> None:
    """Modified, staged, deleted, renamed and untracked files are told apart, with lines added and removed."""
    (repository / "a.txt").write_text("one\n2\nthree\nfour\n")
    git(repository, "mv", "b.txt", "moved.txt")
    (repository / "c.txt").write_text("c\n")
    git(repository, "add", "c.txt")
    (repository / "d.txt").write_text("d\n")
    tree = read_tree(str(repository))
    assert tree.dirty
    assert by_path(tree) == {
        "a.txt": TreeFile("a.txt", "modified", 2, 1),
        "moved.txt": TreeFile("moved.txt", "renamed", 0, 0, "b.txt"),
        "c.txt": TreeFile("c.txt", "created", 1, 0),
        "d.txt": TreeFile("d.txt", "untracked"),
    }


def test_a_deleted_file_is_deleted_whether_staged_or_not(repository: Path, git: Git) -> None:
    """`rm` and `git rm` mean the same to the successor."""
    (repository / "a.txt").unlink()
    git(repository, "rm", "-q", "b.txt")
    assert by_path(read_tree(str(repository))) == {
        "a.txt": TreeFile("a.txt", "deleted", 0, 3),
        "b.txt": TreeFile("b.txt", "deleted", 0, 20),
    }


def test_no_commits_yet_is_a_state_not_an_error(tmp_path: Path, git: Git) -> None:
    """A repository made minutes ago is ordinary."""
    git(tmp_path, "init", "-q", "fresh")
    (tmp_path / "fresh" / "staged.txt").write_text("1\n2\n")
    (tmp_path / "fresh" / "loose.txt").write_text("1\n")
    git(tmp_path / "fresh", "add", "staged.txt")
    tree = read_tree(str(tmp_path / "fresh"))
    assert (tree.branch, tree.head, tree.note) == ("main", None, "no commits yet")
    assert by_path(tree) == {
        "staged.txt": TreeFile("staged.txt", "created", 2, 0),
        "loose.txt": TreeFile("loose.txt", "untracked"),
    }


def test_detached_head_has_no_branch(repository: Path, git: Git) -> None:
    """Work on a detached HEAD is easily lost: the successor is told."""
    git(repository, "checkout", "-q", "--detach")
    tree = read_tree(str(repository))
    assert tree.branch is None
    assert tree.note == "HEAD is detached"


@pytest.mark.parametrize(
    ("begin", "note"),
    [
        ("merge", "a merge is in progress; 1 file has conflicts"),
        ("rebase", "HEAD is detached; a rebase is in progress; 1 file has conflicts"),
    ],
)
def test_what_is_in_progress_is_noted_with_its_conflicts(
    repository: Path, git: Git, begin: str, note: str
) -> None:
    """A successor that does not know about the merge would commit half of it."""
    git(repository, "branch", "other")
    for branch in ("main", "other"):
        git(repository, "checkout", "-q", branch)
        (repository / "a.txt").write_text(f"{branch}\n")
        git(repository, "commit", "-qam", branch)
    git(repository, "checkout", "-q", "main")
    with pytest.raises(subprocess.CalledProcessError):
        git(repository, begin, "-q", "other")
    tree = read_tree(str(repository))
    assert (tree.note, by_path(tree)["a.txt"]) == (note, TreeFile("a.txt", "modified"))


def test_a_subdirectory_sees_the_whole_tree(repository: Path) -> None:
    """Agents are started deep inside repositories; paths stay relative to the root."""
    deep = repository / "sub" / "deeper"
    deep.mkdir(parents=True)
    (repository / "a.txt").write_text("changed\n")
    (deep / "new.txt").write_text("n\n")
    tree = read_tree(str(deep))
    assert tree.root == str(repository)
    assert set(by_path(tree)) == {"a.txt", "sub/deeper/new.txt"}
    assert find_root(str(deep)) == str(repository)


def test_a_symlinked_folder_leads_to_the_real_root(repository: Path, tmp_path: Path) -> None:
    """Two names of one folder are one session's root."""
    (tmp_path / "link").symlink_to(repository)
    assert read_tree(str(tmp_path / "link")).root == str(repository)
    assert find_root(str(tmp_path / "link")) == str(repository)


def test_a_nested_repository_is_its_own_tree(repository: Path, git: Git) -> None:
    """The inner repository answers inside, the outer one sees only its folder."""
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    (inner / "x.txt").write_text("x\n")
    assert read_tree(str(inner)).root == str(inner)
    assert set(by_path(read_tree(str(inner)))) == {"x.txt"}
    assert set(by_path(read_tree(str(repository)))) == {"inner/"}


def test_a_linked_worktree_has_its_own_branch_and_state(repository: Path, tmp_path: Path, git: Git) -> None:
    """Races run in worktrees."""
    git(repository, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    (tmp_path / "side" / "a.txt").write_text("x\n")
    tree = read_tree(str(tmp_path / "side"))
    assert (tree.root, tree.branch) == (str(tmp_path / "side"), "side")
    assert set(by_path(tree)) == {"a.txt"}
    assert not read_tree(str(repository)).dirty


def test_a_changed_submodule_is_noted(repository: Path, tmp_path: Path, git: Git) -> None:
    """Edits inside a submodule are not part of the outer diff, so they must be named."""
    git(tmp_path, "clone", "-q", str(repository), "library")
    git(repository, "submodule", "add", "-q", str(tmp_path / "library"), "vendor/library")
    git(repository, "commit", "-qm", "submodule")
    (repository / "vendor" / "library" / "a.txt").write_text("edited\n")
    tree = read_tree(str(repository))
    assert tree.note == "submodules with changes: vendor/library"
    assert by_path(tree)["vendor/library"].status == "modified"
    assert read_tree(str(repository / "vendor" / "library")).root == str(repository / "vendor" / "library")
