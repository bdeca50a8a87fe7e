"""What a race takes for a runner's result is all of its working tree, or an error: never half of it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.system.git.snapshot import Store, read_changes, write_snapshot
from tests.support.race_places import place
from tests.system.repositories import Git

pytestmark = pytest.mark.size("test")


def test_looks_that_overlap_find_the_same(root: Path, tmp_path: Path, git: Git) -> None:
    """The watch of a race looks at a tree while it is measured; half a result was applied once."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    for number in range(200):
        Path(tree, f"new {number}.txt").write_text(f"{number}\n")
    alone = write_snapshot(tree, store)
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda _: write_snapshot(tree, store), range(24)))
    assert set(found) == {alone}


def test_nothing_is_left_of_a_look(root: Path, tmp_path: Path, git: Git) -> None:
    """Looks are taken every two seconds for hours."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    write_snapshot(tree, store)
    before = sorted(Path(store.folder).iterdir())
    write_snapshot(tree, store)
    assert sorted(Path(store.folder).iterdir()) == before


def test_a_store_that_takes_nothing_is_an_error_and_no_empty_tree(
    root: Path, tmp_path: Path, git: Git
) -> None:
    """Git only warns of files it cannot write down; as a result, the tree would have lost them."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    refusing = tmp_path / "refusing"
    refusing.mkdir()
    for number in range(256):
        (refusing / f"{number:02x}").write_text("a file where git needs a folder")
    with pytest.raises(RelayError, match=r"^git add failed in .*: unable to index file "):
        write_snapshot(tree, Store(str(refusing), store.repository))


def test_a_store_that_is_gone_is_an_error(root: Path, tmp_path: Path, git: Git) -> None:
    """Somebody tidied up."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    with pytest.raises(RelayError, match="cannot write"):
        write_snapshot(tree, Store(str(tmp_path / "nowhere"), store.repository))


def test_a_repository_within_is_left_out_and_all_else_is_there(root: Path, tmp_path: Path, git: Git) -> None:
    """Git calls it an error of its own, beside everything else it took."""
    store, (tree,), _ = place(root, tmp_path / "race", git, "1-ann")
    base = write_snapshot(tree, store)
    git(tree, "init", "-q", "within")
    Path(tree, "within", "file.txt").write_text("not ours\n")
    Path(tree, "zebra.txt").write_text("new\n")
    result = write_snapshot(tree, store, parent=base)
    assert [change.path for change in read_changes(tree, store, base, result)] == ["zebra.txt"]
