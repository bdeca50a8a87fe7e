"""Give an editor private copies of files, each locked while it is open; remove those left unchanged."""

import contextlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from hashlib import sha256

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import cannot_write, read_bounded
from agent_relay.system.disk.locks import open_folder, wait_for_flock

_PREFIX = "edit-"
_NAME = re.compile(r"edit-[A-Za-z0-9_]{8}")
_BEFORE = ".before"
_ATTEMPTS = 5
_SWEEP_S = 5.0
"""Longest time for another process to sweep a copy away, in seconds."""


class EditBuffer(msgspec.Struct, frozen=True):
    """The copy at `path`; a process that inherits `lock` keeps the copy from being swept while it lives."""

    path: str
    lock: int

    def remove(self) -> None:
        """Remove the folder with all that an editor left in it."""
        shutil.rmtree(os.path.dirname(self.path), ignore_errors=True)


@contextlib.contextmanager
def open_edit_buffer(folder: str, name: str, data: bytes) -> Iterator[EditBuffer]:
    """Yield a private copy called `name` in a new folder below `folder`; afterwards it stays, unlocked.

    Raises RelayError if it cannot be written.
    """
    try:
        place, lock = _make_folder(folder)
    except OSError as error:
        raise cannot_write(folder, error) from error
    try:
        path = os.path.join(place, name)
        try:
            _write(os.path.join(place, _BEFORE), sha256(data).hexdigest().encode())
            _write(path, data)
        except OSError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise cannot_write(path, error) from error
        yield EditBuffer(path, lock)
    finally:
        os.close(lock)


def sweep_edit_buffers(folder: str, *, limit_bytes: int) -> list[str]:
    """Remove what killed editors left below `folder` if nothing was changed in it.

    Returns the folders with changes, oldest first: they are kept for the user. A folder that an editor has
    open, or that relay did not make, is left alone.
    """
    kept = []
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):
            place = os.path.join(folder, name)
            if _NAME.fullmatch(name) and _is_ours(place) and not _sweep(place, limit_bytes):
                kept.append(place)
    return sorted(kept, key=_get_age)


def _make_folder(folder: str) -> tuple[str, int]:
    for _ in range(_ATTEMPTS):
        place = tempfile.mkdtemp(prefix=_PREFIX, dir=folder)
        lock = open_folder(place)
        with contextlib.suppress(OSError):
            wait_for_flock(lock, _SWEEP_S)
        # Another process may have swept it away between the two.
        if os.path.isdir(place):
            return place, lock
        os.close(lock)
    raise RelayError(f"cannot make a folder for the editor in {folder}", hint="Try again.")


def _write(path: str, data: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(handle, "wb") as stream:
        stream.write(data)


def _is_ours(place: str) -> bool:
    found = os.lstat(place)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _sweep(place: str, limit_bytes: int) -> bool:
    """Remove the folder if it holds no changes; return false if it holds some that are the user's to see."""
    lock = open_folder(place)
    try:
        wait_for_flock(lock, 0)
        if _holds_work(place, limit_bytes):
            return False
        shutil.rmtree(place, ignore_errors=True)
    except OSError:
        # An editor has it, or nothing can be locked here, and then that cannot be known.
        return True
    finally:
        os.close(lock)
    return True


def _holds_work(place: str, limit_bytes: int) -> bool:
    """Tell whether it holds anything relay did not put there: a changed copy, a file an editor keeps."""
    names = os.listdir(place)
    copies = [name for name in names if name != _BEFORE]
    if not copies:
        return False
    try:
        before = read_bounded(os.path.join(place, _BEFORE), limit_bytes=limit_bytes)
        copy = read_bounded(os.path.join(place, copies[0]), limit_bytes=limit_bytes)
    except (RelayError, FileNotFoundError):
        return True
    return len(copies) > 1 or (bool(copy) and sha256(copy).hexdigest().encode() != before)


def _get_age(place: str) -> float:
    try:
        return os.stat(place).st_mtime
    except OSError:
        return 0.0
