"""A winner's changes reach the tree as it is now, or a sentence says why not and nothing has changed."""

import os
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.applying import apply_plan, find_staging, plan_apply
from agent_relay.system.race_git import Store, write_snapshot
from tests.support.race_places import ODD, dirty, look_from_outside, place, read_files
from tests.system.repositories import Git, make_repository, prepare_git


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in a folder."""
    return prepare_git(tmp_path, monkeypatch)


class World:
    """A repository in the middle of work, and the tree of one runner."""

    def __init__(self, folder: Path, git: Git) -> None:
        self.folder, self.git = folder, git
        self.root = make_repository(folder / "repository", git)
        dirty(self.root, git)
        self.store: Store
        self.store, (tree,), _ = place(self.root, folder / "race", git, "1-ann")
        self.tree = Path(tree)
        self.base = write_snapshot(tree, self.store)

    def apply(self, *, stop_after: str = "") -> list[str]:
        """The paths that were written; with `stop_after` only planned."""
        result = write_snapshot(str(self.tree), self.store, parent=self.base)
        plan = plan_apply(str(self.root), self.store, base=self.base, result=result)
        if stop_after != "plan":
            staging = find_staging(str(self.root), "agent-relay-race")
            apply_plan(str(self.root), self.store, plan, staging=staging)
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


def test_applying_again_after_a_crash_in_the_middle_finishes_it(world: World) -> None:
    """Some files have changed place and some have not: the merge sees both sides agree on the first."""
    work(world.tree)
    paths = world.apply(stop_after="plan")
    (world.root / "b.txt").write_text((world.tree / "b.txt").read_text())
    staging = find_staging(str(world.root), "agent-relay-race")
    os.makedirs(staging)
    Path(staging, "half").write_text("")
    left = world.apply()
    assert set(paths) - set(left) == {"b.txt"}
    assert not os.path.lexists(staging)
    assert (world.root / "deep" / "er" / "new.txt").read_text() == "new\n"


def test_line_endings_come_as_the_user_s_git_writes_them(tmp_path: Path, git: Git) -> None:
    """What a filter makes of a file on its way out is part of the tree."""
    world = World(tmp_path, git)
    (world.root / ".gitattributes").write_text("*.dos text eol=crlf\n")
    world.store, (tree,), _ = place(world.root, tmp_path / "race2", git, "2-bob")
    world.tree = Path(tree)
    world.base = write_snapshot(tree, world.store)
    (world.tree / "x.dos").write_bytes(b"one\r\ntwo\r\n")
    world.apply()
    assert (world.root / "x.dos").read_bytes() == b"one\r\ntwo\r\n"


def test_a_disk_that_refuses_while_staging_changes_nothing(world: World) -> None:
    """Everything is written before the first file changes place."""
    work(world.tree)
    before = read_files(str(world.root))
    result = write_snapshot(str(world.tree), world.store, parent=world.base)
    plan = plan_apply(str(world.root), world.store, base=world.base, result=result)
    with pytest.raises(RelayError):
        apply_plan(str(world.root), world.store, plan, staging="/proc/full/staging")
    assert read_files(str(world.root)) == before


def test_a_winner_without_changes_writes_nothing(world: World) -> None:
    """Applying it is no error and no work."""
    before = read_files(str(world.root))
    assert world.apply() == []
    assert read_files(str(world.root)) == before
