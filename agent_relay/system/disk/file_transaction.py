"""Change several files of one folder as one step: all of them have their new contents, or none has."""

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Iterator, Sequence

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values import render_path, render_paths
from agent_relay.system.disk._undo_record import (
    ChangeRecord,
    UndoStep,
    read_record,
    remove_record,
    write_record,
)
from agent_relay.system.disk.files import cannot_write

_AGAIN = "What is not named is as it was. Mend the cause, then try again."
_NOTHING_LEFT = (errno.ENOENT, errno.ENOTDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)
_CREATE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnfinishedChangeError(RelayError):
    """A change of files failed, and these could not be restored or were written by another process since."""


class FileEdit(msgspec.Struct, frozen=True):
    """`path`, relative to the folder, gets the contents and type of the file `source`; empty removes it.

    `before` is what `describe_file` returned for it when the change was decided. `executable` sets or clears
    its executable bits; `None` leaves them, like the rest of its mode, as they are.
    """

    path: str
    source: str
    before: str
    executable: bool | None = None


def describe_file(root: str, path: str) -> str:
    """Describe what is at `path` in folder `root`, as a text that changes with its type and contents.

    Empty for nothing and for a folder, which files may replace. Links are not followed, neither at `path` nor
    above it. Raise OSError if it cannot be read.
    """
    place = os.path.join(root, path)
    if any(os.path.islink(os.path.join(root, above)) for above in _list_above(path)):
        return ""
    try:
        found = os.lstat(place)
        if stat.S_ISLNK(found.st_mode):
            return f"link {hashlib.sha256(os.fsencode(os.readlink(place))).hexdigest()}"
        if stat.S_ISDIR(found.st_mode):
            return ""
        # Without blocking or following: the name may have become a pipe or a link since.
        handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    with open(handle, "rb") as stream:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return "no regular file"
        return f"file {hashlib.file_digest(stream, 'sha256').hexdigest()}"


def change_files(root: str, changes: Sequence[FileEdit], *, record: str) -> None:
    """Make all of `changes` in folder `root`, or none.

    New contents are written beside their targets first, on whatever file system those are; files are removed
    last. Meanwhile the file `record` says what every file was and where its old contents are, so that
    `undo_changes` can restore what a killed process leaves. Raise RelayError if a file is no longer what its
    change says it was, or the disk refuses; then everything is as it was. Raise UnfinishedChangeError if it
    is not.
    """
    undo_changes(record)
    try:
        made = _lay_out(root, changes)
        _look_at_all(made)
    except OSError as error:
        raise cannot_write(error.filename or root, error) from error
    try:
        write_record(record, made)
        _stage(made, changes)
        _look_at_all(made)
        _replace_all(made)
        for step in made.steps:
            _check_old_file(made, step)
        write_record(record, made.finish())
    except (OSError, RelayError) as error:
        refused = cannot_write(error.filename or root, error) if isinstance(error, OSError) else error
        said = _put_back(made, record)
        if said:
            raise UnfinishedChangeError(f"{refused.sentence}; {said}", hint=_AGAIN) from error
        raise refused from error
    _clear(made, record)


def undo_changes(record: str) -> None:
    """Undo or finish what a killed `change_files` left: every file is what it was, or all are changed.

    Harmless if nothing was left, and if the folder is gone or not mounted now. Raise UnfinishedChangeError if
    files cannot be restored, or were changed since and so were left alone; it may be tried again.
    """
    made = read_record(record)
    if made is None or not os.path.isdir(made.root):
        return
    if made.is_done:
        _clear(made, record)
    elif said := _put_back(made, record):
        raise UnfinishedChangeError(
            f"an interrupted change of {made.root} was undone in part: {said}", hint=_AGAIN
        )


def _lay_out(root: str, changes: Sequence[FileEdit]) -> ChangeRecord:
    """Plan the steps and the names they use, without writing anything. Raise OSError."""
    written = {change.path for change in changes if change.source}
    token = os.urandom(4).hex()
    steps: list[UndoStep] = []
    folders: dict[str, None] = {}
    emptied: list[tuple[str, int]] = []
    for number, change in enumerate(changes):
        name = os.path.join(_find_place(root, change.path, written), f".agent-relay-{token}-{number}")
        after = describe_file(*os.path.split(change.source)) if change.source else ""
        steps.append(UndoStep(change.path, change.before, after, f"{name}.new", f"{name}.old"))
        if change.source:
            missing = [above for above in _list_above(change.path) if not _is_folder(root, above)]
            folders |= dict.fromkeys(reversed(missing))
            emptied += _list_folders(root, change.path)
    return ChangeRecord(root, tuple(steps), tuple(folders), tuple(emptied))


def _find_place(root: str, path: str, written: set[str]) -> str:
    """Return the folder nearest to `path` that exists before and after, from which a rename is possible."""
    for above in _list_above(path):
        if _is_folder(root, above) and written.isdisjoint((above, *_list_above(above))):
            return above
    return ""


def _list_above(path: str) -> list[str]:
    """Return the relative folders `path` lies in, the nearest first, without the top itself."""
    found = []
    while path := os.path.dirname(path):
        found.append(path)
    return found


def _list_folders(root: str, path: str) -> Iterator[tuple[str, int]]:
    """Yield the folder at `path` and those below with their modes, the innermost first; nothing for none."""
    if not _is_folder(root, path):
        return
    for folder, _, _ in os.walk(os.path.join(root, path), topdown=False):
        yield os.path.relpath(folder, root), stat.S_IMODE(os.lstat(folder).st_mode)


def _is_folder(root: str, path: str) -> bool:
    """Return whether `path` is a folder itself, with no link at it or above it."""
    try:
        return all(
            stat.S_ISDIR(os.lstat(os.path.join(root, one)).st_mode) for one in (path, *_list_above(path))
        )
    except OSError:
        return False


def _stage(made: ChangeRecord, changes: Sequence[FileEdit]) -> None:
    """Write all new contents, on their targets' file systems. Raise OSError."""
    for step, change in zip(made.steps, changes, strict=True):
        staged = made.locate(step.staged)
        if step.after.startswith("link"):
            os.symlink(os.readlink(change.source), staged)
        elif step.after:
            with open(change.source, "rb") as source, open(os.open(staged, _CREATE, 0o600), "wb") as target:
                shutil.copyfileobj(source, target)
                _set_mode(made.locate(step.path) if step.before.startswith("file") else "", staged, change)
                target.flush()
                os.fsync(target.fileno())


def _set_mode(old: str, staged: str, change: FileEdit) -> None:
    """Give the new file the mode and attributes of the file `old`, except for the executable bits.

    Without an old one it gets the mode of its source. Raise OSError.
    """
    if not old:
        shutil.copymode(change.source, staged)
        return
    found = os.lstat(old)
    with contextlib.suppress(PermissionError):
        os.chown(staged, found.st_uid, found.st_gid)
    shutil.copystat(old, staged)
    os.utime(staged)  # Build tools go by it.
    mode = stat.S_IMODE(found.st_mode)
    if change.executable is not None:
        # Whoever may read it may run it, as git does it.
        os.chmod(staged, mode | (mode & 0o444) >> 2 if change.executable else mode & ~0o111)


def _look_at_all(made: ChangeRecord) -> None:
    """Raise RelayError, before anything is moved, if a file is not what it was."""
    removed = {step.path for step in made.steps if not step.after}
    for step in made.steps:
        _look_again(made, step)
        _refuse_links(made, step, but=removed)


def _look_again(made: ChangeRecord, step: UndoStep) -> None:
    """Raise RelayError if the file is not what it was."""
    if describe_file(made.root, step.path) != step.before:
        _refuse(step.path)


def _refuse_links(made: ChangeRecord, step: UndoStep, *, but: set[str]) -> None:
    """Raise RelayError if a folder above a file is a link, which would lead the file elsewhere."""
    for above in _list_above(step.path):
        if above not in but and os.path.islink(made.locate(above)):
            _refuse(above)


def _refuse(path: str) -> None:
    raise RelayError(f"{render_path(path)} was changed just now", hint="Nothing was written. Try again.")


def _replace_all(made: ChangeRecord) -> None:
    """Put every file in its place; remove files last, except any in the way. Raise OSError or RelayError."""
    written = [step for step in made.steps if step.after]
    removed = [step for step in made.steps if not step.after]
    paths = {step.path for step in written}
    above = {folder for path in paths for folder in _list_above(path)}
    early = [step for step in removed if step.path in above or paths.intersection(_list_above(step.path))]
    for step in early:
        _remove(made, step)
    for folder, _ in made.emptied:
        os.rmdir(made.locate(folder))
    for step in written:
        _refuse_links(made, step, but=set())
        os.makedirs(os.path.dirname(made.locate(step.path)), exist_ok=True)
        _replace(made, step)
    for step in removed:
        if step not in early:
            _remove(made, step)


def _remove(made: ChangeRecord, step: UndoStep) -> None:
    """Rename the file to its `old` name. Raise OSError or RelayError."""
    _look_again(made, step)
    if step.before:
        os.rename(made.locate(step.path), made.locate(step.old))


def _replace(made: ChangeRecord, step: UndoStep) -> None:
    """Put the new file in place of the old one, which keeps its `old` name. Raise OSError or RelayError."""
    target, staged, old = (made.locate(name) for name in (step.path, step.staged, step.old))
    if step.before:
        _link(target, old)
        _look_again(made, step)
        os.replace(staged, target)
        return
    try:
        # Unlike a rename it replaces nothing that somebody has just put there.
        os.link(staged, target, follow_symlinks=False)
    except OSError:
        if os.path.lexists(target):
            _refuse(step.path)
        os.rename(staged, target)
    else:
        os.unlink(staged)


def _link(path: str, name: str) -> None:
    """Make `name` a hard link to the file, or a copy if the file system has no hard links.

    Raise OSError.
    """
    try:
        os.link(path, name, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:
        # Somebody else's file may not be linked either.
        if os.path.islink(path):
            os.symlink(os.readlink(path), name)
            return
        with open(path, "rb") as source, open(os.open(name, _CREATE, 0o600), "wb") as target:
            shutil.copyfileobj(source, target)
            shutil.copystat(path, name)


def _check_old_file(made: ChangeRecord, step: UndoStep) -> None:
    """Raise RelayError if the old file was written to while it was replaced."""
    if step.before and describe_file(made.root, step.old) != step.before:
        _refuse(step.path)


def _put_back(made: ChangeRecord, record: str) -> str:
    """Put everything back as it was and remove the record; return what could not be, empty for nothing."""
    failed: list[str] = []
    changed: list[str] = []
    for step in reversed([step for step in made.steps if step.after]):
        _restore(made, step, failed, changed)
    for folder in reversed(made.folders):
        with contextlib.suppress(OSError):
            os.rmdir(made.locate(folder))
    for folder, mode in reversed(made.emptied):
        with contextlib.suppress(OSError):
            os.mkdir(made.locate(folder))
            os.chmod(made.locate(folder), mode)
    for step in made.steps:
        if not step.after:
            _restore(made, step, failed, changed)
    try:
        if not failed:
            remove_record(record)
    except RelayError as error:
        failed.append(error.sentence)
    said = [f"not put back: {render_paths(failed)}"] if failed else []
    said += [f"changed meanwhile, what they were before is in: {render_paths(changed)}"] if changed else []
    return "; ".join(said)


def _restore(made: ChangeRecord, step: UndoStep, failed: list[str], changed: list[str]) -> None:
    """Restore the file; if another process has written it since, leave that, and the old file beside it."""
    target, staged, old = (made.locate(name) for name in (step.path, step.staged, step.old))
    try:
        now = describe_file(made.root, step.path)
        if os.path.lexists(old):
            if now == step.before or _is_same(target, old):
                os.unlink(old)
            elif now in ("", step.after):
                os.rename(old, target)
            else:
                changed.append(step.old)
        elif not step.before and (_is_same(target, staged) or _is_added(step, now, staged)):
            os.unlink(target)
        if os.path.lexists(staged):
            os.unlink(staged)
    except OSError as error:
        failed.append(f"{render_path(step.path)} ({error.strerror})")


def _is_added(step: UndoStep, now: str, staged: str) -> bool:
    """Return whether the new file at the step's path is ours: it has our contents, and `staged` is gone."""
    return bool(step.after) and now == step.after and not os.path.lexists(staged)


def _is_same(one: str, other: str) -> bool:
    """Return whether both are names of one file."""
    try:
        return os.path.samestat(os.lstat(one), os.lstat(other))
    except OSError:
        return False


def _clear(made: ChangeRecord, record: str) -> None:
    """Remove old contents, and folders left empty by that; what cannot be removed is left for next time."""
    is_left = False
    for step in made.steps:
        names = [(os.unlink, step.old), (os.unlink, step.staged)]
        names += [(os.rmdir, above) for above in _list_above(step.path) if not step.after]
        for remove, name in names:
            try:
                if os.path.lexists(made.locate(name)):
                    remove(made.locate(name))
            except OSError as error:
                is_left = is_left or error.errno not in _NOTHING_LEFT
    if not is_left:
        with contextlib.suppress(RelayError):
            remove_record(record)
