"""A runner's branch and worktree: made, after a crash made again, and removed without a trace."""

import os
from contextlib import AbstractContextManager

from agent_relay.domain.errors import RelayError
from agent_relay.system.carrying import unpack_changes
from agent_relay.system.locks import lock_folder
from agent_relay.system.race_git import read_line, run_git, try_git
from agent_relay.system.removing import remove_tree


def make_worktree(root: str, tree: str, *, branch: str, head: str, reason: str, luggage: str) -> None:
    """Folder `tree` is a worktree of `root` on `branch`, a new branch at `head`, with `luggage` unpacked.

    What an earlier try left is removed first, so it may be called again after a crash; the name of the
    branch must be the race's own. Raises RelayError.
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
    """Nothing is left of the worktree and its branch; says what had to stay, empty for nothing.

    Works whatever was removed by hand before, the repository included. Raises RelayError.
    """
    remove_tree(tree)
    if not os.path.isdir(root) or not read_line(root, "rev-parse", "--absolute-git-dir"):
        return ""
    with _alone_in(root):
        return _forget(root, tree, branch)


def _alone_in(root: str) -> AbstractContextManager[bool]:
    """While its block runs no other of us changes the repository's worktrees. Raises RelayError.

    Git reads the files of every worktree to list, add or remove one, and gives up ("failed to read
    .../commondir") where another git is just making them: measured on 2.39.5, 45 times in 6,600 commands
    of three processes.
    """
    folder = os.path.join(root, read_line(root, "rev-parse", "--git-common-dir"))
    return lock_folder(os.path.realpath(folder), f"another race is changing the worktrees of {root}")


def _forget(root: str, tree: str, branch: str) -> str:
    """As `remove_worktree` does, of a folder that is gone."""
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
    """The folders of all worktrees of the repository `root` lies in, there or not, and what they are on."""
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
    """The commit `root` stands on. Raises RelayError where no worktree can be made from it."""
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
