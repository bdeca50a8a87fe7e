"""Read the files transcripts are kept in, with bounded memory and without ever writing to them."""

import os
from collections.abc import Iterator
from itertools import islice

from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.disk.regular_files import open_stream
from agent_relay.transcripts.lenient_json import LINE_BYTES

# Above this nothing is read: it is no session, and would not fit into memory as facts.
MAX_BYTES = 2 << 30


def iterate_lines(path: str) -> Iterator[bytes]:
    """Yield the lines of `path` up to the size it has now; it may grow meanwhile.

    A line longer than readers take is cut to just above that size, so that it is counted as skipped.
    Raises RelayError if the file cannot be read.
    """
    try:
        with open_stream(path) as file:
            left = _check_size(os.fstat(file.fileno()).st_size, path)
            while left > 0:
                line = file.readline(min(left, LINE_BYTES + 1))
                if not line:
                    return
                left -= len(line)
                yield line
                while left > 0 and len(line) > LINE_BYTES and not line.endswith(b"\n"):
                    line = file.readline(min(left, LINE_BYTES + 1))
                    left -= len(line)
                    if not line:
                        return
    except OSError as error:
        raise cannot_read(path, error) from error
    except UntrustedDataError as error:
        raise UntrustedDataError(f"cannot read the transcript: {error.sentence}") from error


def _check_size(size_bytes: int, path: str) -> int:
    """Return `size_bytes`; raise UntrustedDataError if it is above `MAX_BYTES`."""
    if size_bytes > MAX_BYTES:
        raise UntrustedDataError(f"{path} is larger than {MAX_BYTES >> 30} GiB")
    return size_bytes


def read_beginning(path: str, *, lines: int, limit_bytes: int) -> list[bytes]:
    """Return the first complete lines of `path`, at most `lines` of them and `limit_bytes` in all."""
    found: list[bytes] = []
    for line in islice(iterate_lines(path), lines):
        limit_bytes -= len(line)
        if limit_bytes < 0:
            break
        found.append(line)
    return found


def read_small(path: str, *, limit_bytes: int) -> bytes | None:
    """Return the bytes of a file; `None` if it is missing, unreadable or larger than `limit_bytes`."""
    try:
        return read_bounded(path, limit_bytes=limit_bytes)
    except (OSError, RelayError):
        return None


def cannot_read(path: str, error: OSError) -> RelayError:
    """Build the error for a transcript that cannot be opened."""
    return RelayError(f"cannot read the transcript {path}: {error.strerror}")
