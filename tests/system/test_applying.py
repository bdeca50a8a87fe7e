"""A winner's changes reach the tree as it is now, or a sentence says why not and nothing has changed."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.git.apply import ApplyPlan, apply_plan, plan_apply, undo_apply
from agent_relay.system.git.snapshot import Store, write_snapshot
from tests.support.race_places import ODD, dirty, look_from_outside, place, read_files
from tests.system.repositories import Git, make_repository

pytestmark = pytest.mark.size("test")


class World:
    """A repository in the middle of work, and the tree of one runner."""

    def __init__(self, folder: Path, git: Git, *, git_dir: str = "", root: Path | None = None) -> None:
        """With `git_dir` the repository keeps its own files there; `root` is one that there is already."""
        self.folder, self.git = folder, git
        self.own = folder / "race"
        self.root = root or make_repository(folder / "repository", git)
        if git_dir:
            shutil.move(self.root / ".git", git_dir)
            (self.root / ".git").write_text(f"gitdir: {git_dir}\n")
        dirty(self.root, git)
        self.store: Store
        self.store, (tree,), _ = place(self.root, folder / "race", git, "1-ann")
        self.tree = Path(tree)
        self.base = write_snapshot(tree, self.store)

    def plan(self) -> ApplyPlan:
        """What applying the runner's work would write."""
        result = write_snapshot(str(self.tree), self.store, parent=self.base)
        return plan_apply(str(self.root), self.store, base=self.base, result=result)

    def write(self, plan: ApplyPlan) -> None:
        """Apply it."""
        apply_plan(str(self.root), self.store, plan, folder=str(self.own))

    def apply(self) -> list[str]:
        """The paths that were written."""
        undo_apply(str(self.own))
        plan = self.plan()
        self.write(plan)
        return [change.path for change in plan.changes]


@pytest.fixture
def world(tmp_path: Path, git: Git) -> World:
    """A repository and a runner."""
    return World(tmp_path, git)


def work(tree: Path) -> None:
    """Every kind of change a runner may make."""
    (tree / "b.txt").write_text("b\n" * 20 + "more\n")
    (tree / ODD).write_bytes(b"\0other\r\n")
    (tree / "gone too.txt").write_text("")
    (tree / "sub" / "deep.txt").unlink()
    (tree / "sub").rmdir()
    (tree / "sub").write_text("a file where a folder was\n")
    (tree / "hidden.txt").write_text("mine alone\n")
    (tree / "loose" / "run me.sh").chmod(0o644)
    (tree / "link").unlink()
    (tree / "link").symlink_to("b.txt")
    (tree / "deep" / "er").mkdir(parents=True)
    (tree / "deep" / "er" / "new.txt").write_text("new\n")


def test_the_tree_gets_exactly_the_runner_s_changes(world: World) -> None:
    """Uncommitted work, the index included, stays as it was beside them."""
    staged = world.git(world.root, "diff", "--cached")
    work(world.tree)
    world.apply()
    mine, theirs = read_files(str(world.root)), read_files(str(world.tree))
    assert {path for path in mine if path not in theirs} == {"x.log", "ignored/big"}
    assert {path: found for path, found in mine.items() if path in theirs} == theirs
    assert world.git(world.root, "diff", "--cached") == staged


def test_applying_leaves_nothing_in_the_repository(world: World) -> None:
    """Neither an object nor a staging folder; only `git status` may differ."""
    before = look_from_outside(world.root, world.git)
    (world.tree / "a.txt").write_text("one\n2\nthree\nfour, applied\n")
    assert world.apply() == ["a.txt"]
    assert look_from_outside(world.root, world.git) == before
    assert (world.root / "a.txt").read_text() == "one\n2\nthree\nfour, applied\n"


def test_what_the_user_did_meanwhile_elsewhere_is_kept(world: World) -> None:
    """Nobody stops working because a race is on; even the same file can be merged."""
    (world.tree / "b.txt").write_text("first\n" + "b\n" * 20)
    (world.root / "b.txt").write_text("b\n" * 20 + "mine\n")
    (world.root / "later.txt").write_text("mine\n")
    assert world.apply() == ["b.txt"]
    assert (world.root / "b.txt").read_text() == "first\n" + "b\n" * 20 + "mine\n"
    assert (world.root / "later.txt").read_text() == "mine\n"


@pytest.mark.parametrize("clash", ["lines", "added", "deleted", "ignored", "ignored above", "repository"])
def test_what_does_not_fit_is_refused_by_name_and_nothing_changes(world: World, clash: str) -> None:
    """Half of a change is worse than none."""
    (world.tree / "aa first.txt").write_text("would be written first\n")
    match clash:
        case "lines":
            (world.tree / "a.txt").write_text("one\n2\nthree\nfour, theirs\n")
            (world.root / "a.txt").write_text("one\n2\nthree\nfour, mine\n")
            said = r"changed here since the race began, in the same lines: a\.txt"
        case "added":
            (world.tree / "new.txt").write_text("theirs\n")
            (world.root / "new.txt").write_text("mine\n")
            said = r"in the same lines: new\.txt"
        case "deleted":
            (world.tree / "b.txt").unlink()
            (world.root / "b.txt").write_text("mine\n")
            said = r"in the same lines: b\.txt"
        case "ignored":
            (world.tree / ".gitignore").write_text("")
            (world.tree / "x.log").write_text("theirs\n")
            said = r"files that git ignores are in the way: x\.log"
        case "ignored above":
            (world.tree / ".gitignore").write_text("")
            (world.tree / "x.log").mkdir()
            (world.tree / "x.log" / "in").write_text("theirs\n")
            said = r"files that git ignores are in the way: x\.log/in"
        case _:
            make_repository(world.tree / "nested", world.git)
            said = "repositories within are not applied: nested"
    before = read_files(str(world.root))
    with pytest.raises(RelayError, match=said):
        world.apply()
    assert read_files(str(world.root)) == before


def test_line_endings_come_as_the_user_s_git_writes_them(tmp_path: Path, git: Git) -> None:
    """What a filter makes of a file on its way out is part of the tree."""
    world = World(tmp_path, git)
    (world.root / ".gitattributes").write_text("*.dos text eol=crlf\n")
    world.own = tmp_path / "race2"
    world.store, (tree,), _ = place(world.root, world.own, git, "2-bob")
    world.tree = Path(tree)
    world.base = write_snapshot(tree, world.store)
    (world.tree / "x.dos").write_bytes(b"one\r\ntwo\r\n")
    world.apply()
    assert (world.root / "x.dos").read_bytes() == b"one\r\ntwo\r\n"


@pytest.mark.parametrize("where", ["separate", "linked"])
def test_a_repository_kept_on_another_file_system_than_the_tree_loses_nothing(
    tmp_path: Path, git: Git, where: str
) -> None:
    """What was staged there could not be renamed into the tree, when files had been deleted already."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as other:
        if where == "separate":
            world = World(tmp_path, git, git_dir=f"{other}/git")
        else:
            main = make_repository(Path(other) / "main", git)
            git(main, "worktree", "add", "-q", tmp_path / "linked")
            world = World(tmp_path, git, root=tmp_path / "linked")
        assert os.stat(other).st_dev != os.stat(world.root).st_dev
        work(world.tree)
        world.apply()
        mine, theirs = read_files(str(world.root)), read_files(str(world.tree))
        assert {path: found for path, found in mine.items() if path in theirs} == theirs
        assert set(mine) - set(theirs) == {"x.log", "ignored/big"}


@pytest.mark.parametrize("when", ["while it was planned", "before it is written"])
def test_a_save_while_the_merge_is_made_is_refused_and_nothing_is_written(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """The merge knows nothing of it, so its result would replace what was saved."""
    work(world.tree)
    if when == "while it was planned":
        real, folder = shutil.which("git"), world.folder / "bin"
        folder.mkdir()
        save = f"echo mine >> '{world.root}/b.txt'"
        script = f'#!/bin/sh\ncase " $* " in *" merge-tree "*) {save};; esac\nexec {real} "$@"\n'
        (folder / "git").write_text(script)
        (folder / "git").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        with pytest.raises(RelayError, match=r"these were changed just now: b\.txt"):
            world.plan()
    else:
        plan = world.plan()
        (world.root / "b.txt").write_text("b\n" * 20 + "mine\n")
        before = read_files(str(world.root))
        with pytest.raises(RelayError, match=r"b\.txt was changed just now"):
            world.write(plan)
        assert read_files(str(world.root)) == before
    assert (world.root / "b.txt").read_text() == "b\n" * 20 + "mine\n"
    assert (world.root / "sub" / "deep.txt").exists()


def test_files_keep_their_modes_and_are_runnable_as_the_runner_left_them(world: World) -> None:
    """What only its owner may read stays so; the right to run it is part of the change."""
    (world.root / "a.txt").chmod(0o600)
    (world.root / "loose" / "run me.sh").chmod(0o750)
    (world.tree / "a.txt").write_text("one\n2\nthree\nfour, applied\n")
    (world.tree / "loose" / "run me.sh").chmod(0o644)
    (world.tree / "new place.txt").chmod(0o755)
    world.apply()
    paths = ("a.txt", "loose/run me.sh", "new place.txt")
    found = [os.lstat(world.root / path).st_mode & 0o777 for path in paths]
    assert found == [0o600, 0o640, 0o755]


def test_an_ignored_link_in_a_folder_that_becomes_a_file_is_in_the_way(world: World) -> None:
    """A link to a folder is no folder to be emptied."""
    (world.root / "sub" / "x.log").symlink_to("../loose")
    (world.tree / "sub" / "deep.txt").unlink()
    (world.tree / "sub").rmdir()
    (world.tree / "sub").write_text("a file\n")
    with pytest.raises(RelayError, match="files that git ignores are in the way: sub"):
        world.apply()


def test_what_git_cannot_make_of_the_result_changes_nothing(world: World) -> None:
    """Every file is made whole before the first one of the tree is touched."""
    work(world.tree)
    before = read_files(str(world.root))
    plan = world.plan()
    world.own = Path("/proc/full")
    with pytest.raises(RelayError):
        world.write(plan)
    assert read_files(str(world.root)) == before


def test_a_winner_without_changes_writes_nothing(world: World) -> None:
    """Applying it is no error and no work."""
    before = read_files(str(world.root))
    assert world.apply() == []
    assert read_files(str(world.root)) == before
