"""Tell whether another shell has the same session: each holds a file lock that ends with its process."""

import os
from contextlib import suppress

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.locks import open_lock, try_flock, wait_for_flock

_ENTER_S = 5.0
"""How long another shell may take to look whether it is alone."""


class SessionLock:
    """Locks the session of one shell; `folder`, private to the user, has a file for each locked session."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._session = ""
        self._handle = -1

    def enter(self, session: str) -> bool:
        """Lock `session` for this shell, and unlock any other; return whether another shell has it.

        Raises RelayError if its file cannot be written or locked.
        """
        if session != self._session:
            self.leave()
            self._handle = open_lock(os.path.join(self._folder, f"{session}.here"))
            self._session = session
        try:
            is_alone = try_flock(self._handle)
            wait_for_flock(self._handle, _ENTER_S, is_shared=True)
        except OSError as error:
            raise RelayError(f"cannot lock session {session}: {error.strerror}") from error
        return not is_alone

    def leave(self) -> None:
        """Unlock this shell's session; the last shell of a session removes its file."""
        if self._handle >= 0:
            with suppress(OSError):
                wait_for_flock(self._handle, 0)
                os.unlink(os.path.join(self._folder, f"{self._session}.here"))
            os.close(self._handle)
        self._handle, self._session = -1, ""


def is_shared(lock: SessionLock | None, session: str) -> bool:
    """Lock `session` and return whether another shell has it, too; false if its file cannot be written."""
    try:
        return lock is not None and bool(session) and lock.enter(session)
    except RelayError:
        return False
