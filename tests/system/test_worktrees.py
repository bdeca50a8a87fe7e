"""A runner finds exactly what the user has, and the repository keeps nothing of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.locks import lock_folder
from agent_relay.system.git.snapshot import (
    check_version,
    count_lines,
    open_store,
    read_changes,
    write_snapshot,
)
from agent_relay.system.git.worktree import check_repository, list_worktrees, pack_changes, remove_worktree
from tests.support.race_places import ODD, look_from_outside, place, read_files
from tests.system.repositories import Git, make_repository

pytestmark = pytest.mark.size("test")

# The superuser reads every file; without these capabilities it reads what its modes allow, as everybody does.
_READS_ALL = "-dac_override,-dac_read_search"
AS_NO_SUPERUSER = (
    ["setpriv", f"--bounding-set={_READS_ALL}", f"--inh-caps={_READS_ALL}"] if os.geteuid() == 0 else []
)


def test_a_runner_finds_what_the_user_has(root: Path, tmp_path: Path, git: Git) -> None:
    """Staged, unstaged, untracked, gone, moved, hidden, odd names, modes, links: all but what git ignores."""
    _, (tree,), luggage = place(root, tmp_path / "race", git, "1-ann")
    mine = read_files(str(root))
    assert ODD in mine
    ignored = {"x.log", "ignored/big"}
    assert read_files(tree) == {path: found for path, found in mine.items() if path not in ignored}
    status = ("status", "--porcelain=v2", "-z", "--untracked-files=all")
    assert git(tree, *status) == git(root, *status)
    assert git(tree, "diff") == git(root, "diff")
    assert git(tree, "diff", "--cached") == git(root, "diff", "--cached")
    assert git(tree, "rev-parse", "HEAD") == git(root, "rev-parse", "HEAD")
    assert git(tree, "branch", "--show-current") == "race-1-ann"
    assert luggage.notes == ("what git ignores is not in the runners' trees: ignored/, x.log",)
    assert luggage.files == 9


def test_worktrees_are_changed_by_one_race_at_a_time(root: Path, tmp_path: Path, git: Git) -> None:
    """Git that reads one half made gives up: one of two races at once was stopped by that now and then."""
    _, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    before = look_from_outside(root, git)
    with lock_folder(str(root / ".git"), "the test cannot"):
        with pytest.raises(RelayError, match="another race is changing the worktrees"):
            place(root, tmp_path / "other", git, "2-bob")
        with pytest.raises(RelayError, match="another race is changing the worktrees"):
            # From within another worktree it is the same repository.
            remove_worktree(tree, str(tmp_path / "gone"), branch="race-9-gone")
    assert look_from_outside(root, git) == before
    place(root, tmp_path / "other", git, "2-bob")


def test_afterwards_the_repository_is_as_it_was(root: Path, tmp_path: Path, git: Git) -> None:
    """Not an object, a ref, a line of configuration or a worktree is left of three runners."""
    before = look_from_outside(root, git)
    store, trees, _ = place(root, tmp_path / "race", git, "1-ann", "2-bob", "3-eve")
    assert len(list_worktrees(str(root))) == 4
    for number, tree in enumerate(trees):
        Path(tree, f"new {number}.txt").write_text("new\n")
        write_snapshot(tree, store)
    for name, tree in zip(("1-ann", "2-bob", "3-eve"), trees, strict=True):
        assert remove_worktree(str(root), tree, branch=f"race-{name}") == ""
    assert look_from_outside(root, git) == before


def test_a_worktree_removed_by_hand_in_any_way_is_cleaned_all_the_same(
    root: Path, tmp_path: Path, git: Git
) -> None:
    """People tidy up, and a clean that trips over it would leave the rest for ever."""
    before = look_from_outside(root, git)
    _, (one, two, three), _ = place(root, tmp_path / "race", git, "1-ann", "2-bob", "3-eve")
    shutil.rmtree(one)
    git(root, "worktree", "remove", "--force", "--force", two)
    git(root, "worktree", "unlock", three)
    shutil.rmtree(three)
    git(root, "worktree", "prune")
    git(root, "update-ref", "-d", "refs/heads/race-3-eve")
    for name, tree in (("1-ann", one), ("2-bob", two), ("3-eve", three)):
        assert remove_worktree(str(root), tree, branch=f"race-{name}") == ""
        assert remove_worktree(str(root), tree, branch=f"race-{name}") == ""
    assert look_from_outside(root, git) == before


def test_read_only_folders_of_a_build_are_removed(root: Path, tmp_path: Path, git: Git) -> None:
    """Module caches write-protect what they hold."""
    _, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    cache = Path(tree, "cache", "deep")
    cache.mkdir(parents=True)
    (cache / "file").write_text("x")
    cache.chmod(0o555)
    cache.parent.chmod(0o555)
    remove_worktree(str(root), tree, branch="race-1-ann")
    assert not os.path.lexists(tree)


def test_a_repository_that_is_gone_costs_the_worktree_only(root: Path, tmp_path: Path, git: Git) -> None:
    """Nothing is left to be tidied in it."""
    _, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    shutil.rmtree(root)
    assert remove_worktree(str(root), tree, branch="race-1-ann") == ""
    assert not os.path.lexists(tree)


def test_a_branch_the_user_stands_on_is_left_and_said(root: Path, tmp_path: Path, git: Git) -> None:
    """Somebody who went on from a runner's branch must not lose it."""
    _, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    other = tmp_path / "other"
    git(root, "worktree", "add", "-q", "--force", str(other), "race-1-ann")
    said = remove_worktree(str(root), tree, branch="race-1-ann")
    assert said == f"the branch race-1-ann stays: it is checked out in {other}"
    assert git(other, "branch", "--show-current") == "race-1-ann"


@pytest.mark.parametrize("remains", ["branch", "folder", "worktree", "torn"])
def test_what_a_crash_left_half_made_is_made_again(
    root: Path, tmp_path: Path, git: Git, remains: str
) -> None:
    """The step is begun again from the journal, whatever of it was done."""
    tree = tmp_path / "race" / "trees" / "1-ann"
    tree.parent.mkdir(parents=True)
    if remains == "branch":
        git(root, "branch", "race-1-ann")
    elif remains == "folder":
        tree.mkdir()
        (tree / "half").write_text("")
    else:
        git(root, "worktree", "add", "-q", "--lock", "--no-checkout", "-b", "race-1-ann", str(tree))
        if remains == "torn":
            (tree / ".git").unlink()
    _, (made,), _ = place(root, tmp_path / "race", git, "1-ann")
    assert git(made, "status", "--porcelain") == git(root, "status", "--porcelain")
    assert not Path(made, "half").exists()


def test_a_detached_head_and_a_linked_worktree_are_places_like_others(
    root: Path, tmp_path: Path, git: Git
) -> None:
    """Both are where careful people work."""
    git(root, "checkout", "-q", "--detach")
    linked = tmp_path / "linked"
    git(root, "worktree", "add", "-q", "--detach", str(linked))
    (linked / "a.txt").write_text("here\n")
    _, (one,), _ = place(root, tmp_path / "race", git, "1-ann")
    _, (two,), _ = place(linked, tmp_path / "race2", git, "1-bob")
    assert git(one, "status", "--porcelain") == git(root, "status", "--porcelain")
    assert git(two, "diff", "--stat") == git(linked, "diff", "--stat")


def test_submodules_and_repositories_within_are_said_in_words(root: Path, tmp_path: Path, git: Git) -> None:
    """They cannot be carried; silence would look like a runner that deleted them."""
    inner = make_repository(tmp_path / "inner", git)
    git(root, "submodule", "add", "-q", str(inner), "vendored")
    make_repository(root / "nested", git)
    (root / ".git" / "MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD") + "\n")
    _, (tree,), luggage = place(root, tmp_path / "race", git, "1-ann")
    assert luggage.notes == (
        "a merge is in progress here; the runners' trees do not know of it",
        "what git ignores is not in the runners' trees: ignored/, x.log",
        "submodules are empty in the runners' trees: vendored",
        "repositories within this one are not carried: nested/",
    )
    assert os.listdir(Path(tree, "vendored")) == []


def test_files_that_cannot_be_read_are_said_in_words(root: Path, tmp_path: Path) -> None:
    """One such file is no reason to refuse."""
    (root / "secret").write_text("x")
    (root / "secret").chmod(0)
    packing = f"""
from agent_relay.system.git.worktree import pack_changes
print(*pack_changes({str(root)!r}, {str(tmp_path / "luggage")!r}).notes, sep="\\n")
"""
    done = subprocess.run(
        [*AS_NO_SUPERUSER, sys.executable, "-c", packing],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "what git ignores is not in the runners' trees: ignored/, x.log",
        "files that cannot be read are not carried: secret",
    ], done.stderr


def test_conflicts_are_refused_before_anything_is_made(root: Path, tmp_path: Path, git: Git) -> None:
    """An index with three versions of a file cannot be handed to anybody."""
    git(root, "commit", "-qam", "all")
    git(root, "checkout", "-qb", "other", "HEAD~1")
    git(root, "reset", "-q", "--hard")
    (root / "a.txt").write_text("theirs\n")
    git(root, "commit", "-qam", "theirs")
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "-q", "main")
    with pytest.raises(RelayError, match=r"files have conflicts: a\.txt"):
        pack_changes(str(root), str(tmp_path / "luggage"))


def test_no_commits_and_no_repository_are_refused_with_the_way_out(tmp_path: Path, git: Git) -> None:
    """A worktree is made from a commit."""
    (tmp_path / "plain").mkdir()
    with pytest.raises(RelayError, match="not in a git repository") as refused:
        check_repository(str(tmp_path / "plain"))
    assert refused.value.hint == "Run: git init"
    git(tmp_path, "init", "-q", "fresh")
    with pytest.raises(RelayError, match="no commits yet") as refused:
        check_repository(str(tmp_path / "fresh"))
    assert refused.value.hint == "Commit something first, be it empty: git commit --allow-empty -m start"


def test_a_split_index_is_carried_whole(root: Path, tmp_path: Path, git: Git) -> None:
    """Half of it stands in a file that only the user's own tree has."""
    git(root, "config", "core.splitIndex", "true")
    git(root, "update-index", "--split-index")
    (root / "a.txt").write_text("split\n")
    git(root, "add", "a.txt")
    before = look_from_outside(root, git)
    _, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    assert git(tree, "status", "--porcelain") == git(root, "status", "--porcelain")
    remove_worktree(str(root), tree, branch="race-1-ann")
    assert look_from_outside(root, git) == before


def test_changes_are_read_from_commits_and_uncommitted_files_alike(
    root: Path, tmp_path: Path, git: Git
) -> None:
    """Some agents commit, some do not, and some leave a repository or an unreadable thing behind."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    base = write_snapshot(tree, store)
    assert read_changes(tree, store, base, write_snapshot(tree, store, parent=base)) == ()
    Path(tree, "a.txt").write_text("one\n2\nthree\nfour, changed\n")
    git(tree, "commit", "-qam", "by the agent")
    Path(tree, ODD).write_bytes(b"other")
    git(tree, "mv", "sub/deep.txt", "sub/deeper.txt")
    git(tree, "init", "-q", "empty")
    Path(tree, "debug.log").write_text("ignored\n")
    result = write_snapshot(tree, store, parent=base)
    changes = {change.path: change for change in read_changes(tree, store, base, result)}
    assert set(changes) == {"a.txt", ODD, "sub/deep.txt", "sub/deeper.txt"}
    assert [(span.first, span.last) for span in changes["a.txt"].spans] == [(4, 4)]
    assert count_lines(tree, store, base, result) == (3, 1, 1)


def test_a_disk_that_refuses_is_told(root: Path, tmp_path: Path) -> None:
    """A luggage that cannot be packed leaves no half of it to be taken for a whole."""
    (tmp_path / "file").write_text("")
    with pytest.raises(RelayError, match="cannot write"):
        pack_changes(str(root), str(tmp_path / "file" / "luggage"))
    with pytest.raises(RelayError, match="cannot write"):
        open_store(str(tmp_path / "file" / "objects"), str(root))


def test_a_git_that_is_too_old_is_one_clear_error(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is made: half a race would have to be tidied up by hand. Vendors add words."""
    check_version(str(root))
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def name_git(said: str) -> None:
        (folder / "git").write_text(f"#!/bin/sh\necho '{said}'\n")
        (folder / "git").chmod(0o755)

    for said in ("git version 2.34.1", "git version 1.9", "hello", ""):
        name_git(said)
        with pytest.raises(RelayError, match=r"^a race needs git 2\.38 or newer, this is ") as found:
            check_version(str(root))
        assert found.value.hint == "Upgrade git.", said
    for said in ("git version 2.39.5 (Apple Git-154)", "git version 3.0", "git version 2.51"):
        name_git(said)
        check_version(str(root))
