"""Keep a leg's folder where others look for it: runtime folders are removed at a last logout, or by hand."""

import errno
import fcntl
import os
import stat

from agent_relay.system.disk.folder_alarm import FolderAlarm, identify, identify_open
from agent_relay.terminal.holder._event_loop import IN, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
# Whoever removes the folder is through by then; made at once, it would stand in the way of its own removal.
_SETTLES_S = 0.5
_AGAIN_S = 2.0
_SELDOM_S = 60.0
# How often one looks where nothing tells of a change.
_UNTOLD_S = 5.0


class FolderKeeper:
    """Keeps folder, lock and socket of a leg as long as it `may_stay`: makes again what was deleted.

    `listen` makes the socket, `leave` is called once it may not stay; `was_gone`: a folder was made again.
    Nothing is checked before something was deleted or moved, unless the kernel cannot report that; then it is
    checked every 5 s.
    """

    def __init__(
        self,
        loop: Loop,
        folder: str,
        lock: int,
        *,
        listen: "Callable[[], None]",
        may_stay: "Callable[[], bool]",
        leave: "Callable[[], None]",
    ) -> None:
        self._loop = loop
        self._folder = folder
        self._lock = lock
        self._listen = listen
        self._may_stay = may_stay
        self._leave = leave
        self.was_gone = False
        self._sock = identify(f"{folder}/sock")
        self._wait_s = _SELDOM_S
        self._alarm: FolderAlarm | None = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        if self._alarm is not None and self._alarm.fd >= 0:
            self._loop.forget(self._alarm.fd)
            self._alarm.close()
        self._alarm = FolderAlarm(self._folder)
        if self._alarm.fd >= 0:
            self._loop.watch(self._alarm.fd, IN, self._wake)
        else:
            self._loop.after("folder", _UNTOLD_S, self._look)

    def _wake(self, _ready: int) -> None:
        if self._alarm is not None:
            self._alarm.take()
        self._loop.after("folder", _SETTLES_S, self._look)

    def _look(self) -> None:
        if not self._may_stay():
            self._leave()
            return
        try:
            is_changed = self._restore()
        except OSError:
            # There may be no place for it before the user's next login.
            self._loop.after("folder", _AGAIN_S, self._look)
            return
        if is_changed:
            self._wait_s = _AGAIN_S
            self._set_alarm()
        if self._wait_s < _SELDOM_S:
            # What was just made may go with the rest of what is being removed, or be hidden by a mount.
            self._loop.after("folder", self._wait_s, self._look)
            self._wait_s *= 2
        elif self._alarm is not None and self._alarm.fd < 0:
            self._loop.after("folder", _UNTOLD_S, self._look)

    def _restore(self) -> bool:
        """Make again what is gone; return whether anything was. Raise OSError if it cannot be made."""
        missing = [path for path in _list_folders(self._folder) if _make(path)]
        self.was_gone |= bool(missing)
        is_locked = identify(f"{self._folder}/lock") == identify_open(self._lock)
        if not is_locked:
            fresh = os.open(f"{self._folder}/lock", _LOCK_FLAGS, 0o600)
            try:
                fcntl.flock(fresh, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.dup2(fresh, self._lock, inheritable=False)
            finally:
                os.close(fresh)
        path = f"{self._folder}/sock"
        listens = self._sock is not None and identify(path) == self._sock
        if not listens:
            if os.path.lexists(path) and stat.S_ISSOCK(os.lstat(path).st_mode):
                os.unlink(path)
            self._listen()
            self._sock = identify(path)
        return bool(missing) or not is_locked or not listens


def _make(path: str) -> bool:
    """Make a missing folder; return whether it was missing. Raise OSError, also if others may write to it."""
    is_missing = not os.path.lexists(path)
    if is_missing:
        _check_above(os.path.dirname(path))
        os.makedirs(path, mode=0o700)
    found = os.lstat(path)
    is_private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022
    if not is_private:
        raise OSError(errno.EPERM, "a folder others could write to", path)
    return is_missing


def _check_above(folder: str) -> None:
    """Raise OSError if others could replace what is made in the folder, or in the nearest one that exists.

    In a shared one anybody may have made it, once ours was gone.
    """
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    found = os.stat(folder)
    is_common = found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX
    if found.st_uid not in (0, os.geteuid()) or is_common:
        raise OSError(errno.EPERM, "a folder others could exchange things in", folder)


def _list_folders(folder: str) -> list[str]:
    """Return the runtime folder, the folder of legs, and the leg's own."""
    above = os.path.dirname(folder)
    return [os.path.dirname(above), above, folder]
