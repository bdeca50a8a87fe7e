"""File locks that end with their process: for being the one daemon, starting it, and editing a folder."""

import contextlib
import fcntl
import os
import signal
import time
from collections.abc import Iterator
from types import FrameType

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import cannot_write, wait_for_flock

_FOLDER_WAIT_S = 5.0
_PAUSE_S = 0.05


def take_lock(path: str, *, limit_s: float = 0.0) -> int | None:
    """Take the lock; return the descriptor that holds it, `None` if another process kept it for `limit_s`.

    It is close-on-exec: no child inherits the lock. Waiting uses an alarm, so `limit_s` above zero is for the
    main thread of a process that has no event loop yet. Raise RelayError if the file cannot be opened.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise cannot_write(path, error) from error
    try:
        if limit_s > 0:
            with _alarm(limit_s):
                fcntl.flock(handle, fcntl.LOCK_EX)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, TimeoutError):
        os.close(handle)
        return None
    return handle


def wait_for_lock(path: str, *, limit_s: float) -> int | None:
    """Take the lock as `take_lock` does, on any thread of any process: try again until `limit_s` is over."""
    end = time.monotonic() + limit_s
    while (handle := take_lock(path)) is None and time.monotonic() < end:
        time.sleep(_PAUSE_S)
    return handle


@contextlib.contextmanager
def lock_folder(folder: str, busy: str) -> Iterator[bool]:
    """Lock `folder` for this process alone; yield whether it is, false if the file system has no locks.

    No file is left there. Raise RelayError saying `busy` if another process holds it for too long, OSError if
    it is not a folder.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield _lock(handle, busy)
    finally:
        os.close(handle)


def _lock(handle: int, busy: str) -> bool:
    try:
        wait_for_flock(handle, _FOLDER_WAIT_S)
    except BlockingIOError:
        raise RelayError(busy, hint="Try again.") from None
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _alarm(limit_s: float) -> Iterator[None]:
    def ring(_number: int, _frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
