"""Tell whether another shell has the same session: each holds a file lock that ends with its process."""

import fcntl
import os
from contextlib import suppress

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import cannot_write


class SessionLock:
    """Locks the session of one shell; `folder`, private to the user, has a file for each locked session."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._session = ""
        self._handle = -1

    def enter(self, session: str) -> bool:
        """Lock `session` for this shell, and unlock any other; return whether another shell has it.

        Raises RelayError if its file cannot be written.
        """
        if session != self._session:
            self.leave()
            self._handle = _open(os.path.join(self._folder, f"{session}.here"))
            self._session = session
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(self._handle, fcntl.LOCK_SH)
            return True
        fcntl.flock(self._handle, fcntl.LOCK_SH)
        return False

    def leave(self) -> None:
        """Unlock this shell's session; the last shell of a session removes its file."""
        if self._handle >= 0:
            with suppress(OSError):
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(os.path.join(self._folder, f"{self._session}.here"))
            os.close(self._handle)
        self._handle, self._session = -1, ""


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise cannot_write(path, error) from error


def is_shared(company: SessionLock | None, session: str) -> bool:
    """Lock `session` and return whether another shell has it, too; false if its file cannot be written."""
    try:
        return company is not None and bool(session) and company.enter(session)
    except RelayError:
        return False
