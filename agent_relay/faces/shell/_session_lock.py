"""Tell whether another shell has the same session: each holds a file lock that ends with its process."""

import fcntl
import os
from contextlib import suppress

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import cannot_write


class SessionLock:
    """The shells of one user; `folder` is private to them, with a file a session they have."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._session = ""
        self._handle = -1

    def enter(self, session: str) -> bool:
        """Whether another shell has `session`, which this one has now, and no other. Raises RelayError."""
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
        """This shell has no session; the last one there takes its file along."""
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
    """Whether another shell has `session` too; nobody knows where its folder cannot be written."""
    try:
        return company is not None and bool(session) and company.enter(session)
    except RelayError:
        return False
