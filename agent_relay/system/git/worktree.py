"""A runner's branch and worktree: made with the user's uncommitted work, and removed without a trace.

Uncommitted work is copied from one working tree to others byte for byte, modes and links too. After a crash a
worktree is made again.
"""

import contextlib
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import FOLDER
from agent_relay.domain.values import render_paths
from agent_relay.system.disk.files import cannot_write, open_stream, read_bounded, write_atomic
from agent_relay.system.disk.locks import lock_folder
from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.git.snapshot import copy_index, read_line, run_git, try_git

_INDEX, _FILES, _LIST = "index", "files", "list"
_SUBMODULE = b"160000"
_UNMERGED = b"U"
_OWN = f"{FOLDER}/".encode()
_MOST_BYTES = 4 << 30
"""Largest file that is copied, in bytes: a sparse one would fill the disk."""
_STATES = (
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("BISECT_LOG", "bisect"),
)


class DirtyTree(msgspec.Struct, frozen=True):
    """Copy of the uncommitted work: how many files, and notes on what was left out."""

    files: int
    notes: tuple[str, ...] = ()


def pack_changes(root: str, folder: str) -> DirtyTree:
    """Copy all that `root` has beyond its commit to private `folder`: index, changed and untracked files.

    One copy for all runners, so that they start alike whatever the user types meanwhile. What git ignores is
    left out. Raise RelayError if the tree has conflicts or cannot be read; called again, it starts over.
    """
    remove_tree(folder)
    try:
        os.makedirs(os.path.join(folder, _FILES), mode=0o700)
    except OSError as error:
        raise cannot_write(folder, error) from error
    index = os.path.join(folder, _INDEX)
    copy_index(root, index)
    if os.path.exists(index):
        # Written anew: it may lean on a shared index that only the user's tree has.
        run_git(root, "update-index", "--force-write-index", environ={"GIT_INDEX_FILE": index})
    notes = list(_list_notes(root))
    changed, submodules = _list_changed(root)
    untracked = run_git(root, "ls-files", "--others", "--exclude-standard", "-z").split(b"\0")[:-1]
    inner = [path for path in untracked if path.endswith(b"/")]
    paths = changed + [path for path in untracked if not path.endswith(b"/")]
    carried, unread = _copy_all(os.fsencode(root), paths, folder)
    notes += _render_paths("what git ignores is not in the runners' trees", _list_ignored(root))
    notes += _render_paths("submodules are empty in the runners' trees", submodules)
    notes += _render_paths("repositories within this one are not carried", inner)
    notes += _render_paths("files that cannot be read are not carried", unread)
    return DirtyTree(carried, tuple(notes))


def unpack_changes(folder: str, tree: str) -> None:
    """Give the new working tree `tree` the user's index and files, as `pack_changes` found them.

    Raise RelayError if git or the disk refuses.
    """
    index = read_line(tree, "rev-parse", "--path-format=absolute", "--git-path", "index")
    packed = os.path.join(folder, _INDEX)
    try:
        if os.path.exists(packed):
            write_atomic(index, read_bounded(packed, limit_bytes=_MOST_BYTES), durable=False)
            run_git(tree, "checkout-index", "--all", "--force", "--index", "--quiet")
        entries = read_bounded(os.path.join(folder, _LIST), limit_bytes=_MOST_BYTES).split(b"\0")[:-1]
        files = os.fsencode(os.path.join(folder, _FILES))
        for number, path in enumerate(entries):
            _put(os.path.join(files, b"%d" % number), os.path.join(os.fsencode(tree), path))
    except OSError as error:
        raise cannot_write(tree, error) from error
    # So that the first `git status` in it need not read every file.
    try_git(tree, "update-index", "-q", "--refresh")


def _list_changed(root: str) -> tuple[list[bytes], list[bytes]]:
    """List the paths whose file differs from the index, those hidden from git included; and the submodules.

    Raise RelayError if a path has conflicts.
    """
    fields = run_git(root, "diff-files", "--raw", "-z", "--no-renames").split(b"\0")[:-1]
    changed: dict[bytes, None] = {}
    conflicts: dict[bytes, None] = {}
    for head, path in zip(fields[::2], fields[1::2], strict=False):
        if head.endswith(_UNMERGED):
            conflicts[path] = None
        elif _SUBMODULE not in head:
            changed[path] = None
    if conflicts:
        (note, *_) = _render_paths("files have conflicts", list(conflicts))
        raise RelayError(f"a race cannot start in {root}: {note}", hint="Resolve them first.")
    # `assume-unchanged` (lower case) and `skip-worktree` (S) hide a file's changes from every other command.
    for entry in run_git(root, "ls-files", "-v", "-z").split(b"\0")[:-1]:
        if (entry[:1].islower() or entry[:1] == b"S") and os.path.lexists(
            os.path.join(os.fsencode(root), entry[2:])
        ):
            changed[entry[2:]] = None
    staged = run_git(root, "ls-files", "--stage", "-z").split(b"\0")[:-1]
    return list(changed), [entry.partition(b"\t")[2] for entry in staged if entry.startswith(_SUBMODULE)]


def _list_ignored(root: str) -> list[bytes]:
    """List what git ignores here, a whole folder as one entry, except for relay's own files."""
    words = ("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    return [path for path in run_git(root, *words).split(b"\0")[:-1] if not path.startswith(_OWN)]


def _list_notes(root: str) -> Iterator[str]:
    git_dir = read_line(root, "rev-parse", "--absolute-git-dir")
    under_way = [word for name, word in _STATES if os.path.exists(os.path.join(git_dir, name))]
    if under_way:
        yield f"a {under_way[0]} is in progress here; the runners' trees do not know of it"


def _copy_all(root: bytes, paths: list[bytes], folder: str) -> tuple[int, list[bytes]]:
    """Copy the files below `folder`, with their list; return how many, and which could not be read.

    A path that is gone is in the list, without a copy.
    """
    files = os.fsencode(os.path.join(folder, _FILES))
    taken: list[bytes] = []
    unread: list[bytes] = []
    for path in paths:
        source, copy = os.path.join(root, path), os.path.join(files, b"%d" % len(taken))
        try:
            mode = os.lstat(source).st_mode if os.path.lexists(source) else 0
            if stat.S_ISLNK(mode) or not mode or stat.S_ISDIR(mode):
                readable = True
            else:
                is_small = os.lstat(source).st_size <= _MOST_BYTES
                readable = stat.S_ISREG(mode) and is_small and os.access(source, os.R_OK)
        except OSError:
            readable = False
        if not readable:
            unread.append(path)
            continue
        try:
            _put(source, copy)
        except OSError as error:
            raise cannot_write(os.fsdecode(copy), error) from error
        taken.append(path)
    try:
        with open(os.path.join(folder, _LIST), "wb") as file:
            file.writelines(path + b"\0" for path in taken)
    except OSError as error:
        raise cannot_write(folder, error) from error
    return len(taken), unread


def _put(source: bytes, target: bytes) -> None:
    """Make `target` what `source` is: the same bytes and mode, the same link, or nothing. Raise OSError."""
    with contextlib.suppress(FileNotFoundError):
        if os.path.isdir(target) and not os.path.islink(target):
            remove_tree(os.fsdecode(target))
        else:
            os.unlink(target)
    if not os.path.lexists(source) or (os.path.isdir(source) and not os.path.islink(source)):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(source):
        os.symlink(os.readlink(source), target)
    else:
        with open_stream(source, follow=False) as taken, open(target, "xb") as given:
            shutil.copyfileobj(taken, given)
    shutil.copystat(source, target, follow_symlinks=False)


def _render_paths(what: str, paths: list[bytes]) -> list[str]:
    """Render `what: a, b, …`, in a list; return an empty one for no paths."""
    if not paths:
        return []
    return [f"{what}: {render_paths([os.fsdecode(path) for path in paths])}"]


def make_worktree(root: str, tree: str, *, branch: str, head: str, reason: str, luggage: str) -> None:
    """Make folder `tree` a worktree of `root` on a new `branch` at `head`, and unpack `luggage` into it.

    What an earlier try left is removed first, so it may be called again after a crash; the name of the branch
    must be the race's own. Raise RelayError.
    """
    remove_tree(tree)
    with _alone_in(root):
        _forget(root, tree, branch)
        run_git(root, "update-ref", f"refs/heads/{branch}", head, "0" * len(head))
        run_git(
            root, "worktree", "add", "--quiet", "--no-checkout", "--lock", "--reason", reason, tree, branch
        )
    unpack_changes(luggage, tree)


def remove_worktree(root: str, tree: str, *, branch: str) -> str:
    """Remove the worktree and its branch; return what had to stay, empty for nothing.

    Works whatever was removed by hand before, the repository included. Raise RelayError.
    """
    remove_tree(tree)
    if not os.path.isdir(root) or not read_line(root, "rev-parse", "--absolute-git-dir"):
        return ""
    with _alone_in(root):
        return _forget(root, tree, branch)


def _alone_in(root: str) -> AbstractContextManager[bool]:
    """Lock the repository's worktrees against changes by other processes of ours. Raise RelayError.

    Git reads the files of every worktree to list, add or remove one, and gives up ("failed to read
    .../commondir") if another git is just making them: measured on 2.39.5, 45 times in 6,600 commands of
    three processes.
    """
    folder = os.path.join(root, read_line(root, "rev-parse", "--git-common-dir"))
    return lock_folder(os.path.realpath(folder), f"another race is changing the worktrees of {root}")


def _forget(root: str, tree: str, branch: str) -> str:
    """Do what `remove_worktree` does, for a folder that is gone."""
    worktrees = list_worktrees(root)
    if tree in worktrees:
        run_git(root, "worktree", "remove", "--force", "--force", tree)
    reference = f"refs/heads/{branch}"
    if not read_line(root, "rev-parse", "--verify", "--quiet", reference):
        return ""
    where = next((path for path, there in worktrees.items() if there == reference and path != tree), "")
    if where:
        return f"the branch {branch} stays: it is checked out in {where}"
    # Not `git branch --delete`, which leaves a new file of packed references behind.
    run_git(root, "update-ref", "--no-deref", "-d", reference)
    try_git(root, "config", "--local", "--remove-section", f"branch.{branch}")
    return ""


def list_worktrees(root: str) -> dict[str, str]:
    """Return the folders of all worktrees of `root`'s repository, existing or not, and what each is on."""
    found: dict[str, str] = {}
    path = ""
    for field in run_git(root, "worktree", "list", "--porcelain", "-z").split(b"\0"):
        word, _, value = field.partition(b" ")
        if word == b"worktree":
            path = os.fsdecode(value)
            found[path] = ""
        elif word == b"branch":
            found[path] = os.fsdecode(value)
    return found


def check_repository(root: str) -> str:
    """Return the commit checked out in `root`. Raise RelayError if no worktree can be made from it."""
    if not read_line(root, "rev-parse", "--absolute-git-dir"):
        raise RelayError(
            f"{root} is not in a git repository with a work tree, and a race needs one", hint="Run: git init"
        )
    head = read_line(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if not head:
        raise RelayError(
            f"the repository {root} has no commits yet, so no worktree can be made from it",
            hint="Commit something first, be it empty: git commit --allow-empty -m start",
        )
    return head
