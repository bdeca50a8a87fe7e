"""Remove whole folders, even read-only ones and ones being written to; check by writing that one can be used.

Neither leaves anything behind; temporary files of crashes are removed, too.
"""

import contextlib
import errno
import os
import shutil
from collections.abc import Sequence

from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.system.disk.files import write_all
from agent_relay.system.disk.folders import ELSEWHERE, check_parent, check_private

_REMOVALS = 5


def remove_tree(path: str) -> None:
    """Remove whatever is at `path` with all that is in it; do not follow links.

    If another process still writes into it, try again a few times. Raise RelayError.
    """
    for attempt in range(_REMOVALS):
        try:
            if os.path.islink(path) or os.path.isfile(path):
                return os.unlink(path)
            return shutil.rmtree(path)
        except (FileNotFoundError, NotADirectoryError):
            if not os.path.lexists(path):
                return None
        except OSError as error:
            if attempt == _REMOVALS - 1:
                raise RelayError(f"cannot remove {path}: {error.strerror}") from error
            _open_folders(path)
    return None


def _open_folders(path: str) -> None:
    """Make every folder below writable, so that it can be emptied: build tools write-protect their caches."""
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
        for folder, names, _ in os.walk(path):
            for name in names:
                if not os.path.islink(inner := os.path.join(folder, name)):
                    os.chmod(inner, 0o700)


def sweep_unfinished(folder: str) -> None:
    """Remove what killed processes began to write in `folder`; leave what a living one writes.

    A folder that does not exist or that cannot be read or changed is left as it is.
    """
    with contextlib.suppress(OSError):
        # Nearly all that stands there is something else, in the index of sessions ten thousand entries.
        for name in [name for name in os.listdir(folder) if name.startswith(".tmp-")]:
            mark, _, rest = name.partition("-")
            pid, _, chance = rest.partition("-")
            # As `write_atomic` names what it has not finished: by the process that writes it.
            if mark == ".tmp" and pid.isdecimal() and chance.isalnum() and not os.path.exists(f"/proc/{pid}"):
                os.unlink(os.path.join(folder, name))


_ROOM_BYTES = 1 << 16
"""Bytes that a session's first journal, packet and rules take, about."""
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL)
"""The errors of file systems (NFS, FUSE) and kernels without unnamed files (open(2), O_TMPFILE)."""


def try_writing(folder: str) -> None:
    """Check that files can be made in `folder` and some 64 KiB written to them.

    Mode bits do not show it: a mount may be read-only, a disk or a quota full, and root may write anywhere.
    The folder, its times included, stays as it is if its file system supports unnamed files. Raise OSError as
    a write of ours would.
    """
    handle = _open_nameless(folder)
    try:
        # Random, because some file systems need no room for zeros; and synced, because NFS asks for it late.
        write_all(handle, os.urandom(_ROOM_BYTES))
        os.fsync(handle)
    finally:
        os.close(handle)


def find_full(folders: Sequence[str]) -> str:
    """Return why nothing more can be written into one of `folders`, whose disk is full; empty for nothing.

    Unlike `try_writing` it only asks, which costs next to nothing, and so knows no quotas. What cannot be
    asked counts as not full.
    """
    for folder in folders:
        near = folder
        while not os.path.lexists(near) and near != os.path.dirname(near):
            near = os.path.dirname(near)
        try:
            disk = os.statvfs(near)
        except OSError:
            continue
        blocks = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
        lacks_room = disk.f_blocks and blocks * disk.f_frsize < _ROOM_BYTES
        if lacks_room or (disk.f_files and not disk.f_favail):
            return f"cannot write into {folder}: {os.strerror(errno.ENOSPC)}"
    return ""


def check_usable(path: str) -> bool:
    """Return whether the private folder `path` exists; if it does not, `ensure_private` could make it.

    Nothing is made or left behind: a trial write shows what the file system accepts. Raise ConfigurationError
    if `ensure_private` would, and if nothing can be written into the folder.
    """
    parent = near = os.path.dirname(path)
    try:
        check_private(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        while not os.path.lexists(near):
            near = os.path.dirname(near)
    else:
        try:
            try_writing(path)
        except OSError as error:
            raise ConfigurationError(f"cannot write into {path}: {error.strerror}", hint=ELSEWHERE) from error
        return True
    try:
        if near == parent:
            check_parent(parent)
        try_writing(near)
    except OSError as error:
        raise ConfigurationError(
            f"cannot make the folder {path}: {error.strerror}", hint=ELSEWHERE
        ) from error
    return False


def _open_nameless(folder: str) -> int:
    try:
        return os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno not in _NO_UNNAMED:
            raise
    # Called as `write_atomic` calls what it has not finished: where this process dies between the two
    # calls, whoever opens the folder next sweeps it away.
    path = os.path.join(folder, f".tmp-{os.getpid()}-{os.urandom(6).hex()}")
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    os.unlink(path)
    return handle
