"""The real daemon, killed before the n-th thing it does to a disk; its one word is the FOLDER of its world.

Counted is what changes a file or a folder, once `FOLDER/armed` is there; it holds the number of what it lives
to do, and may name the folder with whose first change the counting begins. `FOLDER/done` gets one byte for
each, so that a test knows how far it came.
"""

import fcntl
import os
import signal
import stat
import sys
import threading
from collections.abc import Callable

from agent_relay.daemon.__main__ import main as run_daemon

FOLDER = sys.argv.pop(1)
CHANGES = ("rename", "replace", "symlink", "link", "unlink", "mkdir", "rmdir", "ftruncate", "fsync")
_PID = os.getpid()
_one_at_a_time = threading.RLock()
_open, _write = os.open, os.write


def _count(place: object = "") -> None:
    """One more change is about to be made; or the daemon is gone. What is forked from it counts nothing."""
    if os.getpid() != _PID:
        return
    try:
        file = open(f"{FOLDER}/armed", "rb")  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return
    with file:
        # Who spares the daemon waits for this: what was counted before is counted to its end.
        fcntl.flock(file, fcntl.LOCK_EX)
        lives_for, *first = file.read().decode().split()
        handle = _open(f"{FOLDER}/done", os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
        done = os.fstat(handle).st_size
        if not done and first and first[0] not in str(place).split("/"):
            os.close(handle)
            return
        if done >= int(lives_for):
            os.kill(os.getpid(), signal.SIGKILL)
        _write(handle, b"x")
        os.close(handle)


def _counted(change: Callable[..., object]) -> Callable[..., object]:
    def do(*given: object, **named: object) -> object:
        with _one_at_a_time:
            _count(given[0])
            return change(*given, **named)

    return do


def _create(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
    with _one_at_a_time:
        if flags & os.O_CREAT and not os.path.lexists(path):
            _count(path)
        return _open(path, flags, mode, dir_fd=dir_fd)


def _write_to_disk(handle: int, data: bytes) -> int:
    with _one_at_a_time:
        if stat.S_ISREG(os.fstat(handle).st_mode):
            _count()
        return _write(handle, data)


for _name in CHANGES:
    setattr(os, _name, _counted(getattr(os, _name)))
os.open = _create  # type: ignore[assignment]
os.write = _write_to_disk  # type: ignore[assignment]


def main() -> int:
    """The exit status."""
    return run_daemon()
