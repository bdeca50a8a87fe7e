"""Copy a SQLite database that may be written to, without a lock: one consistent state of it, or nothing."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.regular_files import check_regular, open_stream

_TRIES = 5
_PAUSE_S = 0.1
# A file system's clock is coarse: what was written just now may be written again and look the same.
_COARSE_NS = 50_000_000
_LOG_HEADER_BYTES = 32

_WRITTEN = 3
"""The index of the last write's time in a mark."""

_State = tuple[tuple[int, ...], tuple[int, ...], bytes]


def copy_database(path: str, copy: str, *, copy_file: Callable[[str, str], object] = shutil.copyfile) -> None:
    """Copy the database `path` to `copy`, as a crash would leave it: opening it for writing recovers it.

    Neither the database nor its rollback journal was written to meanwhile, and its write-ahead log was not
    restarted; that log may grow, and SQLite leaves out what is incomplete at its end. Sources:
    sqlite.org/atomiccommit.html, sqlite.org/walformat.html. Raises RelayError if it is written to all the
    time, OSError if it cannot be copied.
    """
    for number in range(_TRIES):
        if number:
            time.sleep(_PAUSE_S)
        now_ns, before = time.time_ns(), _look_at(path)
        if any(0 <= now_ns - mark[_WRITTEN] < _COARSE_NS for mark in before[:2] if mark):
            continue
        check_regular(path)
        copy_file(path, copy)
        for ending in ("-journal", "-wal"):
            check_regular(path + ending, may_miss=True)
            _copy_beside(path + ending, copy + ending, copy_file)
        if before == _look_at(path):
            return
    raise RelayError(f"cannot read sessions from {path}: it is being written to", hint="Try again.")


def _copy_beside(path: str, copy: str, copy_file: Callable[[str, str], object]) -> None:
    """Copy a file beside the database; if there is none, remove the one beside the copy."""
    try:
        copy_file(path, copy)
    except FileNotFoundError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(copy)


def _look_at(path: str) -> _State:
    """Return a state that changes with every write that would tear a copy."""
    log = b""
    with contextlib.suppress(FileNotFoundError), open_stream(f"{path}-wal") as file:
        log = file.read(_LOG_HEADER_BYTES)
    return _mark(path), _mark(f"{path}-journal"), log


def _mark(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
