"""Release the disk space of what was read already, in files that belong to the leg alone.

An idle agent's telemetry grows by megabytes an hour in a folder that is often memory.
"""

import ctypes
import os
import stat
from collections.abc import Sequence

from agent_relay.transcripts.stream_parser import Framed

STEP_BYTES = 1 << 20
KEPT_BYTES = 4096
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # linux/falloc.h
_LOOK_BYTES = 1 << 16


class SpaceReleaser:
    """Frees one file in steps, up to the start of a record: what is left begins with a complete one.

    The newest `KEPT_BYTES` stay, because they identify the file. Offsets do not change.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._starts: list[int] = [0]
        self._freed = 0
        self._can = True

    def free(self, records: Sequence[Framed], *, boundary: int, inode: int) -> None:
        """Release the space of `records`, which were read up to `boundary`.

        Nothing happens if the file system cannot do it.
        """
        self._starts += [at for at, _ in records]
        last = max((at for at in self._starts if at <= boundary - KEPT_BYTES), default=0)
        self._starts = [at for at in self._starts if at >= last]
        if self._can and last - self._freed >= STEP_BYTES:
            self._can = free_range(self._path, inode, start=self._freed, end=last)
            self._freed = last

    def restart(self) -> None:
        """Start over: there is another file at the path."""
        self._starts, self._freed = [0], 0


def free_range(path: str, inode: int, *, start: int, end: int) -> bool:
    """Turn the bytes from `start` to `end` of our own regular file into a hole; return whether it worked.

    Its size does not change. False for a file of other names, owners or inode, and if the file system cannot.
    """
    try:
        file = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except OSError:
        return False
    try:
        found = os.fstat(file)
        is_ours = found.st_uid == os.geteuid() and found.st_nlink == 1 and found.st_ino == inode
        if not (stat.S_ISREG(found.st_mode) and is_ours):
            return False
        library = ctypes.CDLL(None)
        punch = getattr(library, "fallocate64", None) or library.fallocate
        punch.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
        return bool(punch(file, _KEEP_SIZE | _PUNCH_HOLE, start, end - start) == 0)
    except (OSError, AttributeError):
        return False
    finally:
        os.close(file)


def find_data_start(file: int) -> int:
    """Find where the file's text begins: after what was freed, which reads as zeros."""
    try:
        at = os.lseek(file, 0, os.SEEK_DATA)
    except OSError:
        return 0
    while chunk := os.pread(file, _LOOK_BYTES, at):
        rest = chunk.lstrip(b"\0")
        if rest:
            return at + len(chunk) - len(rest)
        at += len(chunk)
    return at
