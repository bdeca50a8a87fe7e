"""The one way to open what others wrote: regular files only, without blocking, and of finite size.

A FIFO would block the reader for ever, a terminal become its controlling terminal, a device yield data
without end or do something when it is opened; a sparse file can claim to be larger than any disk.
"""

import errno
import os
import stat
from io import BufferedReader

from agent_relay.domain.errors import UntrustedDataError

_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_GZIP = 16 + 15  # a gzip header, and the widest window: zlib.net/manual.html

Path = str | bytes


def open_regular(path: Path, *, follow: bool = True) -> int:
    """Return a descriptor to read the regular file at `path`; follow a link only if `follow` says so.

    Raise UntrustedDataError if something else is there, OSError if it cannot be opened.
    """
    # Looked at first: to open a device may be to do something with it.
    check_found(os.stat(path, follow_symlinks=follow), path)
    handle = os.open(path, _FLAGS | (0 if follow else os.O_NOFOLLOW))
    try:
        check_found(os.fstat(handle), path)
    except (OSError, UntrustedDataError):
        os.close(handle)
        raise
    return handle


def open_stream(path: Path, *, follow: bool = True) -> BufferedReader:
    """Return the regular file at `path` as a stream of bytes. Raise as `open_regular` does."""
    return open(open_regular(path, follow=follow), "rb")


def check_regular(path: Path, *, may_miss: bool = False) -> None:
    """Raise UntrustedDataError if `path` is not a regular file, for libraries that open a path themselves.

    Raise FileNotFoundError if it does not exist, unless it `may_miss`; OSError if it cannot be examined.
    """
    try:
        check_found(os.stat(path), path)
    except FileNotFoundError:
        if not may_miss:
            raise


def check_database(path: str) -> None:
    """Raise UntrustedDataError if one of the database's files is not regular: SQLite opens them itself."""
    check_regular(path)
    for ending in ("-wal", "-shm", "-journal"):
        check_regular(path + ending, may_miss=True)


def read_end(path: Path, *, limit_bytes: int) -> bytes:
    """Return the last `limit_bytes` of a regular file. Raise as `open_regular` does."""
    with open_stream(path) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - limit_bytes))
        return file.read(limit_bytes)


def unzip(data: bytes, *, limit_bytes: int) -> bytes:
    """Return the first `limit_bytes` of what the gzipped `data` holds. Raise zlib.error and EOFError."""
    import zlib

    unpacker = zlib.decompressobj(_GZIP)
    found = unpacker.decompress(data, limit_bytes)
    if not unpacker.eof and not unpacker.unconsumed_tail:
        raise EOFError
    return found


def check_found(found: os.stat_result, path: Path) -> None:
    """Raise UntrustedDataError if what was found at `path` is not a regular file, OSError for a folder."""
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise UntrustedDataError(f"{os.fsdecode(path)} is not a regular file")


def find_regular(path: Path) -> int | None:
    """Return a descriptor on the regular file at `path`; `None` if there is none we may read."""
    try:
        return open_regular(path)
    except (OSError, ValueError, UntrustedDataError):
        return None
