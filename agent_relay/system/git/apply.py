"""Apply a runner's changes to the user's working tree as it is now, or say why not and change nothing."""

import os
import stat
from collections.abc import Iterator

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values import render_paths
from agent_relay.system.disk.file_transaction import FileEdit, change_files, describe_file, undo_changes
from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.git import snapshot

_CONFLICT = 1
_BATCH = 200
_MADE = "made"
_RECORD = "applying.json"


class ApplyPlan(msgspec.Struct, frozen=True):
    """A planned change: `result` is the git tree that the user's working tree will equal.

    `before` has, for the path of each of `changes`, what was there, as `describe_file` returns it.
    """

    result: str
    changes: tuple[snapshot.Change, ...]
    before: tuple[str, ...]


def plan_apply(root: str, store: snapshot.Store, *, base: str, result: str) -> ApplyPlan:
    """Plan how to bring `result`'s changes since `base` into the tree `root` as it is now.

    A three-way merge without a working tree. Raise RelayError, naming the paths, if both sides changed the
    same lines, if something that git does not know of is in the way, or if the tree is written to just now.
    Nothing is changed.
    """
    now = snapshot.write_snapshot(root, store, parent=base)
    merged = _merge(root, store, now, result)
    changes = snapshot.read_changes(root, store, now, merged)
    inner = [change.path for change in changes if change.is_repository]
    if inner:
        raise RelayError(f"submodules and repositories within are not applied: {render_paths(inner)}")
    removed = {change.path for change in changes if change.kind is snapshot.ChangeKind.DELETED}
    blocked = [change.path for change in changes if _is_blocked(root, change, removed)]
    if blocked:
        raise RelayError(
            f"files that git ignores are in the way: {render_paths(blocked)}",
            hint="Move them away, then try again.",
        )
    try:
        before = tuple(describe_file(root, change.path) for change in changes)
    except OSError as error:
        raise RelayError(f"cannot read {error.filename or root}: {error.strerror}") from error
    _check_unchanged(root, store, now, base, {change.path for change in changes})
    return ApplyPlan(merged, changes, before)


def apply_plan(root: str, store: snapshot.Store, plan: ApplyPlan, *, folder: str) -> None:
    """Give the working tree the plan's contents; leave the user's index as it was.

    `folder` is a private folder of the race: the new files are made in it before any is written beside its
    target, and it holds the record of what an interrupted call has done, for `undo_apply`. Raise RelayError;
    then nothing has changed. May be repeated after a crash.
    """
    made = os.path.join(folder, _MADE)
    remove_tree(made)
    written = [change.path for change in plan.changes if change.kind is not snapshot.ChangeKind.DELETED]
    try:
        with snapshot.own_index(store) as variables:
            snapshot.run_git(root, "read-tree", plan.result, environ=variables)
            for start in range(0, len(written), _BATCH):
                batch = written[start : start + _BATCH]
                snapshot.run_git(
                    root, "checkout-index", "--force", "--quiet", f"--prefix={made}/", "--", *batch,
                    environ=variables,
                )  # fmt: skip
        change_files(root, list(_list_file_changes(plan, made)), record=os.path.join(folder, _RECORD))
    finally:
        remove_tree(made)


def undo_apply(folder: str) -> None:
    """Undo what a killed `apply_plan` with that `folder` did, if anything. Raise RelayError."""
    undo_changes(os.path.join(folder, _RECORD))


def _list_file_changes(plan: ApplyPlan, made: str) -> Iterator[FileEdit]:
    for change, before in zip(plan.changes, plan.before, strict=True):
        source = "" if change.kind is snapshot.ChangeKind.DELETED else os.path.join(made, change.path)
        yield FileEdit(change.path, source, before, change.executable)


def _check_unchanged(root: str, store: snapshot.Store, now: str, base: str, paths: set[str]) -> None:
    """Raise RelayError if one of `paths` is not as commit `now` has it.

    What was read between two equal snapshots is what both contain.
    """
    again = snapshot.write_snapshot(root, store, parent=base)
    changed = [
        change.path for change in snapshot.read_changes(root, store, now, again) if change.path in paths
    ]
    if changed:
        raise RelayError(f"these were changed just now: {render_paths(changed)}", hint="Try again.")


def _merge(root: str, store: snapshot.Store, now: str, result: str) -> str:
    """Return the merged tree. Raise RelayError naming the paths in conflict."""
    answer = snapshot.try_git(
        root, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", now, result,
        environ=store.variables(),
    )  # fmt: skip
    tree, *paths = answer.output.split(b"\0")[:-1] or [b""]
    if answer.status == _CONFLICT:
        names = [os.fsdecode(path) for path in dict.fromkeys(paths)]
        raise RelayError(
            f"these were changed here since the race began, in the same lines: {render_paths(names)}",
            hint="See what would come: agent-relay race diff",
        )
    if not answer.ok:
        raise RelayError(f"git merge-tree failed in {root}: {snapshot.render_failure(answer)}")
    return tree.decode("ascii")


def _is_blocked(root: str, change: snapshot.Change, removed: set[str]) -> bool:
    """Return whether something is at the path or above it that the snapshot of the tree did not have."""
    if change.kind is snapshot.ChangeKind.DELETED:
        return False
    above = os.path.dirname(change.path)
    while above:
        found = _lstat(os.path.join(root, above))
        if found is not None and not stat.S_ISDIR(found.st_mode) and above not in removed:
            return True
        above = os.path.dirname(above)
    if change.kind is not snapshot.ChangeKind.ADDED:
        return False
    there = _lstat(os.path.join(root, change.path))
    if there is None:
        return False
    # A folder that only holds what is removed makes room for the file.
    return not (stat.S_ISDIR(there.st_mode) and _is_emptied(root, change.path, removed))


def _is_emptied(root: str, path: str, removed: set[str]) -> bool:
    """Return whether the folder contains nothing but what is removed, and folders."""
    return all(
        os.path.relpath(os.path.join(folder, name), root) in removed
        for folder, folders, names in os.walk(os.path.join(root, path))
        for name in (*names, *(one for one in folders if os.path.islink(os.path.join(folder, one))))
    )


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None
