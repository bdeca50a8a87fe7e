"""Leg folders: where a leg's lock and socket are, and how to tell whether its holder lives."""

import contextlib
import errno
import os
import re
import shutil
import time

import msgspec

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import is_ulid
from agent_relay.domain.values import LegId
from agent_relay.system.disk.files import cannot_write, read_bounded
from agent_relay.system.disk.folders import PRIVATE_MODE, Folders, ensure_private
from agent_relay.system.disk.locks import take_lock, wait_for_flock
from agent_relay.terminal.holder.child import LEFT_FILE

_NEW = ".new-"
_MEMBER = re.compile(r"^(\d{1,10}) (\d{1,20})$", re.MULTILINE | re.ASCII)
_LEFT_BYTES = 1 << 20
_REMOVED_S = 5.0
"""Longest delay, in seconds, of a leg folder's removal by a process that writes into it meanwhile."""
_LOCK_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class LegFolder(msgspec.Struct, frozen=True):
    """A leg's folder, whether or not a holder uses it."""

    id: LegId
    folder: str

    @property
    def lock(self) -> str:
        """Locked (flock) by the holder for as long as it lives."""
        return f"{self.folder}/lock"

    @property
    def socket(self) -> str:
        """The socket on which the holder listens."""
        return f"{self.folder}/sock"

    @property
    def left_file(self) -> str:
        """The file in which the holder notes which processes left its agent while that lived."""
        return f"{self.folder}/{LEFT_FILE}"


def create_leg(folders: Folders, leg_id: LegId) -> tuple[LegFolder, int]:
    """Create a leg folder; return it and the descriptor that holds its lock.

    The folder appears already locked, so that no new leg ever looks dead. Hand the descriptor to the holder
    (`pass_fds`) and close it here: from then on the lock is held exactly as long as the holder lives. It is
    close-on-exec, so that no other program started meanwhile keeps it. May be repeated after a crash in the
    middle; only one process, the daemon, makes legs. Raise RelayError.
    """
    leg = _leg(folders, leg_id)
    ensure_private(folders.runtime)
    ensure_private(folders.legs)
    fresh = f"{folders.legs}/{_NEW}{leg_id}"
    handle = -1
    shutil.rmtree(fresh, ignore_errors=True)
    try:
        os.mkdir(fresh, PRIVATE_MODE)
        handle = os.open(f"{fresh}/lock", _LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
        wait_for_flock(handle, 0)
        os.rename(fresh, leg.folder)
    except OSError as error:
        if handle >= 0:
            os.close(handle)
        shutil.rmtree(fresh, ignore_errors=True)
        raise cannot_write(leg.folder, error) from error
    return leg, handle


def sweep_unmade(folders: Folders) -> None:
    """Remove leg folders a killed daemon had begun to make. For the one daemon, before it makes any."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folders.legs):
            if name.startswith(_NEW):
                shutil.rmtree(f"{folders.legs}/{name}", ignore_errors=True)


def try_lock(leg: LegFolder) -> int | None:
    """Take the leg's lock and return its descriptor; `None` if a holder lives.

    Getting it means no holder lives and none can come: close it when done. A lock that is gone counts as free
    and is made anew. Raise RelayError if it cannot be opened for another reason.
    """
    return take_lock(leg.lock)


def read_left(leg: LegFolder) -> set[tuple[int, int]]:
    """Read which processes left the leg's agent while it lived, as (pid, born); empty if none were noted."""
    try:
        text = read_bounded(leg.left_file, limit_bytes=_LEFT_BYTES).decode("ascii", "replace")
    except (OSError, RelayError):
        return set()
    return {(int(pid), int(pid_born)) for pid, pid_born in _MEMBER.findall(text)}


def remove_leg(leg: LegFolder) -> None:
    """Remove the leg's folder; harmless when it is gone already. Raise RelayError."""
    deadline = time.monotonic() + _REMOVED_S
    while os.path.lexists(leg.folder):
        try:
            shutil.rmtree(leg.folder)
        except FileNotFoundError:
            # A holder that leaves takes its socket away under our hands.
            continue
        except OSError as error:
            # Somebody who asks whether a holder lives makes the lock anew between two of our steps.
            if error.errno == errno.ENOTEMPTY and time.monotonic() < deadline:
                continue
            raise RelayError(f"cannot remove {leg.folder}: {error.strerror}") from error


def _leg(folders: Folders, leg_id: LegId) -> LegFolder:
    if not is_ulid(leg_id):
        raise ValueError("a leg is named by a ULID")
    return LegFolder(leg_id, f"{folders.legs}/{leg_id}")
