"""Write files so that no reader sees half of one, and read files so that none can harm the reader.

What others wrote is opened in one way: regular files only, without blocking, and of finite size. A FIFO would
block the reader for ever, a terminal become its controlling terminal, a device yield data without end or do
something when it is opened; a sparse file can claim to be larger than any disk.
"""

import errno
import os
import stat
from io import BufferedReader

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.protocol.json_text import parse_json

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


_CREATE = os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_HINTS = {
    errno.ENOSPC: "Free some space on that disk.",
    errno.EDQUOT: "Your quota on that disk is used up.",
    errno.EFBIG: "The file would be larger than this process may write.",
    errno.EROFS: "That disk is read-only.",
    errno.EACCES: "You may not write there.",
}


def write_atomic(path: str, data: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
    """Write `data` to `path`, whole: a reader sees the old file or the new one, also after a crash.

    A symlink at `path` is replaced, not followed. With `durable` the file is safe from a power cut when this
    returns (two fsyncs). Raise RelayError; then the old file is untouched.
    """
    folder = os.path.dirname(path) or "."
    temporary = os.path.join(folder, f".tmp-{os.getpid()}-{os.urandom(6).hex()}")
    made = False
    try:
        handle = os.open(temporary, _CREATE | os.O_WRONLY | os.O_EXCL, mode)
        made = True
        try:
            if mode & 0o077:
                os.fchmod(handle, mode)  # The umask has taken from it what others may do.
            write_all(handle, data)
            if durable:
                os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(temporary, path)
        made = False
        if durable:
            sync_folder(folder)
    except OSError as error:
        raise cannot_write(path, error) from error
    finally:
        if made:
            os.unlink(temporary)


def write_output(path: str, data: bytes) -> None:
    """Write `data` to the file `path`, which the user has named for our output.

    Like `write_atomic`, but a link is followed, an existing file keeps its mode, and a pipe or a device is
    written into: a user who names `/dev/stdout` does not want a file in its place. Raise RelayError.
    """
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return write_atomic(os.path.realpath(path), data)
    except OSError as error:
        raise cannot_write(path, error) from error
    if stat.S_ISREG(found.st_mode):
        return write_atomic(os.path.realpath(path), data, mode=stat.S_IMODE(found.st_mode))
    try:
        # A pipe that nobody reads would make us wait for ever.
        handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            os.set_blocking(handle, True)
            write_all(handle, data)
        finally:
            os.close(handle)
    except OSError as error:
        raise cannot_write(path, error) from error


def read_bounded(path: str, *, limit_bytes: int) -> bytes:
    """Return the contents of a regular file of at most `limit_bytes`.

    Raise FileNotFoundError if there is none, UntrustedDataError if it is larger or is not a regular file (a
    FIFO would block the reader for ever), RelayError if it cannot be read.
    """
    try:
        handle = open_regular(path)
        try:
            return read_handle(handle, path, limit_bytes=limit_bytes)
        finally:
            os.close(handle)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RelayError(f"cannot read {path}: {error.strerror}") from error


def read_object(path: str, *, limit_bytes: int) -> dict[str, object]:
    """Return the JSON object in one of our own files; empty if it is missing or unreadable."""
    try:
        found = parse_json(read_bounded(path, limit_bytes=limit_bytes))
    except (RelayError, OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_handle(handle: int, path: str, *, limit_bytes: int, begin: int = 0) -> bytes:
    """Read a descriptor like `read_bounded`, from `begin` on; `path` is for messages. Raise OSError too."""
    found = os.fstat(handle)
    check_found(found, path)
    parts: list[bytes] = []
    offset = begin
    while offset <= limit_bytes and found.st_size <= limit_bytes:
        part = os.pread(handle, min(1 << 20, limit_bytes + 1 - offset), offset)
        if not part:
            return b"".join(parts)
        parts.append(part)
        offset += len(part)
    raise UntrustedDataError(f"{path} is larger than {limit_bytes} bytes")


def write_all(handle: int, data: bytes) -> None:
    """Write all of `data` to a blocking descriptor. Raise OSError; part may then be written."""
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]


def sync_folder(path: str) -> None:
    """Make the names in folder `path` survive a power cut. Raise OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def cannot_write(path: str, error: OSError) -> RelayError:
    """Return the error to show the user for a write that failed."""
    hint = _HINTS.get(error.errno or 0, "")
    return RelayError(f"cannot write {path}: {error.strerror}", hint=hint)
