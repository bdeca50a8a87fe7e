"""Fork an agent's own session by copying it, if the agent cannot do so itself, and remove the copy later."""

import contextlib
import os
import sqlite3
from glob import glob
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import cannot_write, check_database, open_stream, write_atomic

if TYPE_CHECKING:
    from agent_relay.domain.facts import NativeSession

LEFTOVER = "leftover"
"""The file of a run's folder that names the copy outside it, so that a crash leaves no copy behind."""
_FRESH = "fresh"
_DATABASE = "native.db"
_SHORTEST_ID = 8
_BUSY_S = 5.0
_NOTE_BYTES = 1 << 14
_HEAD_BYTES = 1 << 16
_MOST_BYTES = 512 << 20
"""Most bytes that are copied for one document."""
_SHARE = 4
"""Divisor of the free space at the copy's place: at most one part in this many is used."""


def fork_session(
    native: "NativeSession", *, copy_by: Literal["", "beside", "database"], folder: str, fresh_id: str
) -> str:
    """Fork `native` as its adapter's narrative requires; return the id of the session the agent continues.

    The copy is in the run's private `folder`, or outside it and noted there. The original is only read.
    Raises RelayError if it cannot be copied; no copy is left then.
    """
    if copy_by == "beside":
        return _copy_beside(native, folder, fresh_id)
    if copy_by == "database":
        _copy_database(native.path, os.path.join(folder, _DATABASE))
    return native.native_id


def expect_session(folder: str, root: str, pattern: str, fresh_id: str) -> None:
    """Note in the run's `folder` that the agent will leave a session behind, to be removed like a fork.

    Its file is below `root`, matches `pattern` and is named after the beginning of `fresh_id`. Raises
    RelayError.
    """
    note = b"\0".join((os.fsencode(root), os.fsencode(pattern), fresh_id.encode()))
    write_atomic(os.path.join(folder, _FRESH), note, durable=False)


def _remove_fresh(folder: str) -> None:
    try:
        with open_stream(os.path.join(folder, _FRESH)) as file:
            root, pattern, fresh_id = file.read(_NOTE_BYTES).split(b"\0")
    except (OSError, ValueError, UntrustedDataError):
        return
    for name in glob(pattern, root_dir=root):
        path = os.path.join(root, name)
        if fresh_id[:_SHORTEST_ID] in os.path.basename(name) and _speaks_of(path, fresh_id):
            with contextlib.suppress(OSError):
                os.unlink(path)


def remove_fork(folder: str) -> None:
    """Remove the copy that the run in `folder` made outside it, and what the agent wrote beside that copy.

    An agent may continue in a file of its own, named after the hour and the copy's id. A new session of the
    agent's, as noted by `expect_session`, is removed, too.
    """
    _remove_fresh(folder)
    try:
        with open_stream(os.path.join(folder, LEFTOVER)) as file:
            copy, mark, fresh_id = file.read(_NOTE_BYTES).split(b"\0")
        names = os.listdir(os.path.dirname(copy))
    except (OSError, ValueError, UntrustedDataError):
        return
    for name in names:
        path = os.path.join(os.path.dirname(copy), name)
        if path == copy or (mark in name and _speaks_of(path, fresh_id)):
            with contextlib.suppress(OSError):
                os.unlink(path)


def _speaks_of(path: bytes, fresh_id: bytes) -> bool:
    try:
        with open_stream(path) as file:
            return fresh_id in file.read(_HEAD_BYTES)
    except (OSError, UntrustedDataError):
        return False


def _copy_beside(native: "NativeSession", folder: str, fresh_id: str) -> str:
    name = os.path.basename(native.path)
    lengths = range(len(native.native_id), _SHORTEST_ID - 1, -1)
    length = next((length for length in lengths if native.native_id[:length] in name), 0)
    if not length:
        raise RelayError(f"the session's file {name} is not named after its id")
    copied = name.replace(native.native_id[:length], fresh_id[:length])
    copy = os.path.join(os.path.dirname(native.path), copied)
    old, new = native.native_id.encode(), fresh_id.encode()
    if os.path.lexists(copy):
        raise RelayError(f"{copy} is in the way")
    # Noted first: whatever happens from here on, somebody knows what is to be removed.
    note = b"\0".join((os.fsencode(copy), fresh_id[:length].encode(), fresh_id.encode()))
    write_atomic(os.path.join(folder, LEFTOVER), note, durable=False)
    try:
        with open_stream(native.path) as source, open(_create(copy), "wb") as target:
            _check_size(os.fstat(source.fileno()).st_size, native.path, folder)
            for line in source:
                # The agent may be in the middle of its last line.
                if line.endswith(b"\n"):
                    target.write(line.replace(old, new))
    except OSError as error:
        remove_fork(folder)
        raise cannot_write(copy, error) from error
    except RelayError:
        remove_fork(folder)
        raise
    return fresh_id


def _copy_database(path: str, copy: str) -> None:
    try:
        check_database(path)
        beside = (f"{path}{ending}" for ending in ("", "-wal", "-journal"))
        _check_size(sum(os.path.getsize(one) for one in beside if os.path.exists(one)), path, copy)
        os.close(_create(copy))
        address = f"file:{quote(os.fsencode(path))}?mode=ro"
        with (
            contextlib.closing(sqlite3.connect(address, uri=True, timeout=_BUSY_S)) as source,
            contextlib.closing(sqlite3.connect(copy)) as target,
        ):
            source.backup(target)
    except OSError as error:
        raise cannot_write(copy, error) from error
    except sqlite3.Error as error:
        raise RelayError(f"the agent's database {path} cannot be copied: {error}") from error


def _check_size(size_bytes: int, path: str, where: str) -> None:
    """Raise RelayError if `size_bytes` are too many for the folder that holds `where`, often memory."""
    room = os.statvfs(os.path.dirname(where))
    limit_bytes = min(_MOST_BYTES, room.f_bavail * room.f_frsize // _SHARE)
    if size_bytes > limit_bytes:
        raise RelayError(
            f"the agent's own record {path} cannot be copied for a handoff document: it has "
            f"{size_bytes >> 20} MiB, and no more than {limit_bytes >> 20} MiB are copied",
            hint="The handoff itself does not need it.",
        )


def _create(path: str) -> int:
    return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
