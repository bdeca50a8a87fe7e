"""Find programs, and start each in a session of its own with signals as a fresh program has them.

The holder and hot commands load this module, so it imports little.
"""

import errno
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    FileAction = tuple[int, int, str, int, int] | tuple[int, int, int]

# Whatever we ignore would otherwise be ignored in the program too (SIGPIPE, in every Python).
_DEFAULTS = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}


def keep_absolute(path: str) -> str:
    """Return a `PATH` without its empty and relative folders.

    Those mean the folder a program is started in, here mostly a repository: what it calls `git` is not what
    the user means, and relay runs git before anybody has looked at the repository.
    """
    return os.pathsep.join(folder for folder in path.split(os.pathsep) if os.path.isabs(folder))


def find_program(name: str, search: str) -> str:
    """Return the path by which `name` is executed. Raise FileNotFoundError or PermissionError."""
    if "/" in name:
        return name
    refused = False
    for folder in search.split(os.pathsep):
        path = os.path.join(folder or os.curdir, name)
        if os.path.isfile(path):
            if os.access(path, os.X_OK):
                return path
            refused = True
    number = errno.EACCES if refused else errno.ENOENT
    raise OSError(number, os.strerror(number), name)


def give_streams(*descriptors: int | None) -> "list[FileAction]":
    """Return the file actions that make these the program's streams 0, 1 and 2; `None` for `/dev/null`."""
    return [
        (os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0)
        if descriptor is None
        else (os.POSIX_SPAWN_DUP2, descriptor, stream)
        for stream, descriptor in enumerate(descriptors)
    ]


def spawn_program(
    program: str, argv: "Sequence[str]", environ: "Mapping[str, str]", *, actions: "Sequence[FileAction]"
) -> int:
    """Start the program at this path as leader of a new session; return its pid.

    Every signal has its default effect there, and none is blocked. Raise OSError, or ValueError for words
    with a NUL.
    """
    return os.posix_spawn(
        program, list(argv), environ, file_actions=actions, setsid=True, setsigmask=[], setsigdef=_DEFAULTS
    )
