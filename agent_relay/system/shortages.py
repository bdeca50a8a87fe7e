"""What this machine is short of for a while: what fails for want of it is tried again, and no mistake."""

import errno
import os

_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS})
_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def find_shortage(error: BaseException) -> str:
    """Return what `error` or its cause was raised for the lack of: descriptors, memory, room; else empty."""
    return _find(error, _PASSING | _ROOM)


def find_passing(error: BaseException) -> str:
    """Return the same of what comes back by itself: descriptors and memory, not room on a disk."""
    return _find(error, _PASSING)


def find_outer_cause(error: BaseException) -> str:
    """Return why `error` is no mistake of ours: what this machine lacks, or that a peer left; else empty."""
    return find_passing(error) or ("a connection broke" if isinstance(error, ConnectionError) else "")


def _find(error: BaseException | None, numbers: frozenset[int]) -> str:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in numbers:
            return os.strerror(error.errno)
        error = error.__cause__ or error.__context__
    return ""
