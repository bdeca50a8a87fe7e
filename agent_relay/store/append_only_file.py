"""Write an append-only file of lines with one owner; after any crash a line is whole or absent."""

import errno
import fcntl
import os
import threading

from agent_relay.domain.errors import RelayError, StaleOwnerError
from agent_relay.system.disk.files import cannot_write, read_handle, sync_folder, write_all

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW


class AppendOnlyFile:
    """The file at `path`, owned: no other process can own it until this one closes it or dies.

    `found` are the whole lines it held on opening. Safe for several threads. Raises StaleOwnerError if
    another process owns it, RelayError if it cannot be opened or is larger than `limit_bytes`.
    """

    def __init__(self, path: str, *, limit_bytes: int) -> None:
        self.path = path
        self._turn = threading.Lock()
        self._why_closed = ""
        try:
            self._handle = os.open(path, _FLAGS, 0o600)
        except OSError as error:
            raise cannot_write(path, error) from error
        try:
            self._take()
            data = read_handle(self._handle, path, limit_bytes=limit_bytes)
        except OSError as error:
            os.close(self._handle)
            raise cannot_write(path, error) from error
        except RelayError:
            os.close(self._handle)
            raise
        self._size = data.rfind(b"\n") + 1
        self._has_torn = self._size < len(data)
        self._folder_synced = self._size > 0
        self.found = data[: self._size]

    def accept(self) -> None:
        """Accept the lines found: cut a torn line after them and drop `found`.

        Raises RelayError.
        """
        with self._turn:
            if self._has_torn:
                try:
                    os.ftruncate(self._handle, self._size)
                except OSError as error:
                    raise cannot_write(self.path, error) from error
                self._has_torn = False
            self.found = b""

    def append(self, line: bytes, *, durable: bool) -> None:
        """Append `line`, which ends with its newline; with `durable` it then survives a power cut.

        Raises RelayError if the disk refuses (then the file ends as before), or it is closed or was removed.
        """
        with self._turn:
            if self._why_closed:
                raise RelayError(f"cannot write {self.path}: {self._why_closed}")
            try:
                _check_named(self._handle)
                write_all(self._handle, line)
                if durable:
                    os.fdatasync(self._handle)
                    if not self._folder_synced:
                        sync_folder(os.path.dirname(self.path) or ".")
                        self._folder_synced = True
            except OSError as error:
                self._roll_back()
                raise cannot_write(self.path, error) from error
            self._size += len(line)

    def close(self) -> None:
        """Close the file; harmless when repeated."""
        with self._turn:
            if not self._why_closed:
                self._why_closed = "it is closed"
                os.close(self._handle)

    def _take(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StaleOwnerError(
                f"another process owns {self.path}",
                hint="Is a second daemon running? See: agent-relay daemon status",
            ) from None

    def _roll_back(self) -> None:
        """Cut the file back to its known size; only the owner appends, so this removes no one else's line."""
        try:
            os.ftruncate(self._handle, self._size)
        except OSError as error:
            self._why_closed = f"part of a line could not be taken back ({error.strerror})"
            os.close(self._handle)


def _check_named(handle: int) -> None:
    if os.fstat(handle).st_nlink == 0:
        raise OSError(errno.ENOENT, "it was removed while in use")
