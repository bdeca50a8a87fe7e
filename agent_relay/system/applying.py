"""Puts a runner's changes onto the user's working tree as it is now, or says why not and changes nothing."""

import os
import stat
from dataclasses import dataclass

from agent_relay.domain.errors import RelayError
from agent_relay.domain.tree import render_path
from agent_relay.logic.race.changes import Change, Kind
from agent_relay.system.files import cannot_write
from agent_relay.system.race_git import (
    Store,
    own_index,
    read_changes,
    read_line,
    render_failure,
    run_git,
    try_git,
    write_snapshot,
)
from agent_relay.system.removing import remove_tree

_CONFLICT = 1
_TOLD = 5
_BATCH = 200


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be written: `result` is the tree, in git's sense, that the user's shall look like."""

    result: str
    changes: tuple[Change, ...]


def plan_apply(root: str, store: Store, *, base: str, result: str) -> Plan:
    """What makes of the tree `root`, as it is now, one that has `result`'s changes since `base` as well.

    A three-way merge without a working tree. Raises RelayError, naming the paths, where both sides changed
    the same lines or something that git does not know of is in the way. Nothing is changed.
    """
    now = write_snapshot(root, store, parent=base)
    merged = _merge(root, store, now, result)
    changes = read_changes(root, store, now, merged)
    inner = [change.path for change in changes if change.is_repository]
    if inner:
        raise RelayError(f"submodules and repositories within are not applied: {_render(inner)}")
    removed = {change.path for change in changes if change.kind is Kind.DELETED}
    blocked = [change.path for change in changes if _is_blocked(root, change, removed)]
    if blocked:
        raise RelayError(
            f"files that git ignores are in the way: {_render(blocked)}",
            hint="Move them away, then try again.",
        )
    return Plan(merged, changes)


def apply_plan(root: str, store: Store, plan: Plan, *, staging: str) -> None:
    """The working tree has the plan's contents; the user's index is as it was.

    Everything is written into `staging`, on the same disk, before the first file changes place. Raises
    RelayError; where that was while staging, nothing has changed. May be repeated after a crash.
    """
    remove_tree(staging)
    written = [change.path for change in plan.changes if change.kind is not Kind.DELETED]
    try:
        with own_index(store) as variables:
            run_git(root, "read-tree", plan.result, environ=variables)
            for start in range(0, len(written), _BATCH):
                batch = written[start : start + _BATCH]
                run_git(
                    root, "checkout-index", "--force", "--quiet", f"--prefix={staging}/", "--", *batch,
                    environ=variables,
                )  # fmt: skip
        _move(root, staging, plan)
    except OSError as error:
        raise cannot_write(error.filename or root, error) from error
    finally:
        remove_tree(staging)


def find_staging(root: str, name: str) -> str:
    """A folder for `apply_plan`: within the repository's own, where no tool looks, on the tree's disk."""
    return os.path.join(read_line(root, "rev-parse", "--absolute-git-dir"), name)


def _merge(root: str, store: Store, now: str, result: str) -> str:
    """The merged tree. Raises RelayError naming the paths in conflict."""
    answer = try_git(
        root, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", now, result,
        environ=store.variables(),
    )  # fmt: skip
    tree, *paths = bytes(answer.out).split(b"\0")[:-1] or [b""]
    if answer.code == _CONFLICT and not answer.cut:
        names = [os.fsdecode(path) for path in dict.fromkeys(paths)]
        raise RelayError(
            f"these were changed here since the race began, in the same lines: {_render(names)}",
            hint="See what would come: agent-relay race diff",
        )
    if not answer.ok:
        raise RelayError(f"git merge-tree failed in {root}: {render_failure(answer)}")
    return tree.decode("ascii")


def _is_blocked(root: str, change: Change, removed: set[str]) -> bool:
    """Whether something stands at the path or above it that the snapshot of the tree did not have."""
    if change.kind is Kind.DELETED:
        return False
    above = os.path.dirname(change.path)
    while above:
        found = _lstat(os.path.join(root, above))
        if found is not None and not stat.S_ISDIR(found.st_mode) and above not in removed:
            return True
        above = os.path.dirname(above)
    if change.kind is not Kind.ADDED:
        return False
    there = _lstat(os.path.join(root, change.path))
    if there is None:
        return False
    # A folder that only holds what is removed makes room for the file.
    return not (stat.S_ISDIR(there.st_mode) and _is_emptied(root, change.path, removed))


def _is_emptied(root: str, path: str, removed: set[str]) -> bool:
    return all(
        os.path.relpath(os.path.join(folder, name), root) in removed
        for folder, _, names in os.walk(os.path.join(root, path))
        for name in names
    )


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _move(root: str, staging: str, plan: Plan) -> None:
    """Deletions first: a file may stand where a folder comes, and the other way round. Raises OSError."""
    for change in plan.changes:
        if change.kind is Kind.DELETED:
            _delete(root, change.path)
    for change in plan.changes:
        if change.kind is not Kind.DELETED:
            target = os.path.join(root, change.path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(target) and not os.path.islink(target):
                remove_tree(target)
            os.replace(os.path.join(staging, change.path), target)


def _delete(root: str, path: str) -> None:
    """The file is gone, and folders that are empty without it."""
    try:
        os.unlink(os.path.join(root, path))
    except (FileNotFoundError, NotADirectoryError):
        return
    above = os.path.dirname(path)
    while above:
        try:
            os.rmdir(os.path.join(root, above))
        except OSError:
            return
        above = os.path.dirname(above)


def _render(paths: list[str]) -> str:
    names = ", ".join(render_path(path) for path in paths[:_TOLD])
    return f"{names} and {len(paths) - _TOLD} more" if len(paths) > _TOLD else names
