"""A repository in which somebody is in the middle of work, and what it looks like from outside."""

import os
import stat
from pathlib import Path

from agent_relay.system.git.snapshot import Store, open_store
from agent_relay.system.git.worktree import DirtyTree, make_worktree, pack_changes
from tests.system.repositories import Git

ODD = os.fsdecode(b"caf\xe9 \xff\n.txt")
"""A name with a blank, a line feed and bytes that are not UTF-8."""


def dirty(root: Path, git: Git) -> None:
    """Make every kind of uncommitted change in the repository with `a.txt` and `b.txt`."""
    (root / "sub").mkdir()
    for name in ("gone.txt", "gone staged.txt", "moved.txt", "hidden.txt", "sub/deep.txt"):
        (root / name).write_text(f"{name}\n" * 3)
    (root / "link").symlink_to("a.txt")
    (root / ".gitignore").write_text("*.log\n/ignored/\n")
    git(root, "add", ".")
    git(root, "commit", "-qm", "second")
    (root / "a.txt").write_text("one\n2\nthree\n")
    git(root, "add", "a.txt")
    (root / "a.txt").write_text("one\n2\nthree\nfour, not staged\n")
    (root / "b.txt").chmod(0o755)
    (root / "gone.txt").unlink()
    git(root, "rm", "-q", "gone staged.txt")
    git(root, "mv", "moved.txt", "new place.txt")
    (root / "link").unlink()
    (root / "link").symlink_to("sub/deep.txt")
    git(root, "update-index", "--assume-unchanged", "hidden.txt")
    (root / "hidden.txt").write_text("mine alone\n")
    (root / ODD).write_bytes(b"\0\xff binary\r\n")
    (root / "loose").mkdir()
    (root / "loose" / "run me.sh").write_text("echo hello\n")
    (root / "loose" / "run me.sh").chmod(0o755)
    (root / "loose" / "nowhere").symlink_to("/does/not/exist")
    (root / "intended.txt").write_text("soon\n")
    git(root, "add", "--intent-to-add", "intended.txt")
    (root / "x.log").write_text("ignored\n")
    (root / "ignored").mkdir()
    (root / "ignored" / "big").write_text("ignored\n")


def read_files(root: str) -> dict[str, tuple[str, bytes]]:
    """Every file below, git's own and relay's left out: its mode (or `link`) and its bytes (or target)."""
    found: dict[str, tuple[str, bytes]] = {}
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in {".git", ".agent-relay"}]
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in [*names, *links]:
            path = os.path.join(folder, name)
            if name == ".git":
                continue
            if os.path.islink(path):
                found[os.path.relpath(path, root)] = ("link", os.fsencode(os.readlink(path)))
                continue
            with open(path, "rb") as file:
                mode = oct(stat.S_IMODE(os.lstat(path).st_mode))
                found[os.path.relpath(path, root)] = (mode, file.read())
    return found


def look_from_outside(root: Path, git: Git) -> tuple[str, ...]:
    """All that a person can ask git about the repository, and how many objects and files git keeps for it."""
    listed = sorted(
        os.path.relpath(os.path.join(folder, name), root / ".git")
        for folder, _, names in os.walk(root / ".git")
        for name in names
    )
    return (
        git(root, "status", "--porcelain=v2", "--branch", "--ignored"),
        git(root, "worktree", "list", "--porcelain"),
        git(root, "for-each-ref"),
        git(root, "stash", "list"),
        git(root, "config", "--list", "--local"),
        "\n".join(listed),
    )


def place(root: Path, folder: Path, git: Git, *names: str) -> tuple[Store, list[str], DirtyTree]:
    """The race's store, its worktrees, one for each name, and what was carried into them."""
    folder.mkdir(exist_ok=True)
    store = open_store(str(folder / "objects"), str(root))
    luggage = pack_changes(str(root), str(folder / "luggage"))
    (folder / "trees").mkdir(exist_ok=True)
    trees = [str(folder / "trees" / name) for name in names]
    for name, tree in zip(names, trees, strict=True):
        make_worktree(
            str(root),
            tree,
            branch=f"race-{name}",
            head=git(root, "rev-parse", "HEAD"),
            reason="a race",
            luggage=str(folder / "luggage"),
        )
    return store, trees, luggage
