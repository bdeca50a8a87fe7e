"""File locks that end with their process: for being the one daemon, owning a file, and editing a folder.

Every lock is `flock`'s: it belongs to the open descriptor, and all processes on one kernel see it.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import cannot_write, check_found, write_all

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER_WAIT_S = 5.0
# Others hold the lock for one write; longer means that somebody is stopped.
_APPEND_WAIT_S = 2.0
_PAUSE_S = 0.005


def take_lock(path: str, *, limit_s: float = 0.0, is_shared: bool = False) -> int | None:
    """Take the lock; return the descriptor that holds it, `None` if another process kept it for `limit_s`.

    It is close-on-exec: no child inherits the lock. Raise RelayError if the file cannot be opened or locked.
    """
    handle = open_lock(path)
    try:
        wait_for_flock(handle, limit_s, is_shared=is_shared)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        os.close(handle)
        raise RelayError(f"cannot lock {path}: {error.strerror}") from error
    return handle


def open_lock(path: str) -> int:
    """Open the lock file at `path`, made if missing. Raise RelayError."""
    try:
        return os.open(path, _FLAGS, 0o600)
    except OSError as error:
        raise cannot_write(path, error) from error


def wait_for_flock(handle: int, wait_s: float, *, is_shared: bool = False) -> None:
    """Lock the open file for this process, on any thread. Raise BlockingIOError after `wait_s` seconds.

    The wait has a limit because a process stopped in the middle must not stop the others for ever. Raise
    OSError if the file system has no locks.
    """
    kind = fcntl.LOCK_SH if is_shared else fcntl.LOCK_EX
    deadline = time.monotonic() + wait_s
    while True:
        try:
            return fcntl.flock(handle, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise
            time.sleep(_PAUSE_S)


def try_flock(handle: int) -> bool:
    """Lock the open file for this process alone; return whether it is, false if another process has it.

    Raise OSError if the file system has no locks.
    """
    try:
        wait_for_flock(handle, 0)
    except BlockingIOError:
        return False
    return True


@contextlib.contextmanager
def lock_folder(folder: str, busy: str) -> Iterator[bool]:
    """Lock `folder` for this process alone; yield whether it is, false if the file system has no locks.

    No file is left there. Raise RelayError saying `busy` if another process holds it for too long, OSError if
    it is not a folder.
    """
    handle = open_folder(folder)
    try:
        is_locked = True
        try:
            wait_for_flock(handle, _FOLDER_WAIT_S)
        except BlockingIOError:
            raise RelayError(busy, hint="Try again.") from None
        except OSError:
            is_locked = False
        yield is_locked
    finally:
        os.close(handle)


def open_folder(folder: str) -> int:
    """Return a descriptor by which `folder` can be locked. Raise OSError if it is not a folder."""
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


@contextlib.contextmanager
def lock_beside(path: str, *, limit_s: float) -> Iterator[None]:
    """Lock the file `path` for a change of it, by a lock file beside it; readers need no lock.

    Raise RelayError if another process keeps it for `limit_s`, or if it cannot be locked.
    """
    # Dear to import, and readers need no lock.
    import filelock

    lock = filelock.FileLock(f"{path}.lock", timeout=limit_s, mode=0o600)
    try:
        lock.acquire()
    except filelock.Timeout:
        raise RelayError(
            f"another process kept {path} locked for {limit_s:.0f} s",
            hint="See: agent-relay daemon status",
        ) from None
    except OSError as error:
        raise RelayError(f"cannot lock {path}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def append_line(path: str, line: bytes, *, wait_s: float = _APPEND_WAIT_S) -> None:
    """Append `line` (without a newline inside) to `path` as a line of its own, in one write.

    Safe for several writers, each of which waits `wait_s` seconds for the others. A line torn by a full disk
    is ended first, so that it spoils only itself. Raise RelayError; part of the line may be in the file then.
    """
    try:
        handle = open_alone(path, wait_s=wait_s)
        try:
            size = os.fstat(handle).st_size
            torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            write_all(handle, (b"\n" if torn else b"") + line + b"\n")
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_write(path, error) from error


def open_alone(path: str, *, wait_s: float = _APPEND_WAIT_S) -> int:
    """Open `path` for appending and reading; no other process of ours appends to it until it is closed.

    The file is created if it is missing; one that was replaced during the wait is opened anew. Raise OSError
    if it cannot be opened or locked, UntrustedDataError if it is not a regular file.
    """
    while True:
        handle = os.open(path, _FLAGS | os.O_APPEND, 0o600)
        try:
            check_found(os.fstat(handle), path)
            wait_for_flock(handle, wait_s)
            if os.fstat(handle).st_nlink:
                return handle
        except (OSError, UntrustedDataError):
            os.close(handle)
            raise
        os.close(handle)
