"""Which files a process has open, as the kernel tells: whose conversation a file is, whatever it says."""

import contextlib
import os
from collections.abc import Callable, Collection

from agent_relay.system.processes import find_family, list_pids


def find_held(pid: int, is_meant: Callable[[str], bool]) -> frozenset[str] | None:
    """Return real paths of files that `is_meant` and process `pid` has open, or else its nearest descendants.

    An agent may start another of its kind in a shell: the nearest one that holds such a file is the one asked
    about. `None` where nobody can tell: the process is gone, or one of them may not be looked into. Source:
    proc(5), /proc/<pid>/fd.
    """
    is_told = False
    for generation in find_family(pid):
        listed = [list_open(one) for one in generation]
        found = frozenset(path for paths in listed for path in paths or () if is_meant(path))
        if found:
            return found
        if None in listed:
            return None
        is_told = True
    return frozenset() if is_told else None


def find_held_elsewhere(paths: Collection[str], *, but: int) -> frozenset[str]:
    """Return those of the real `paths` open in a process that neither is `but` nor descends from it."""
    wanted = set(paths)
    if not wanted:
        return frozenset()
    family = {pid for generation in find_family(but) for pid in generation} if but > 0 else set()
    others = (pid for pid in list_pids() if pid not in family and pid != os.getpid())
    return frozenset(path for pid in others for path in list_open(pid) or () if path in wanted)


def list_open(pid: int) -> list[str] | None:
    """Return the real paths of the files process `pid` has open; `None` where it may not be looked into."""
    folder = f"/proc/{pid}/fd"
    found = []
    try:
        for name in os.listdir(folder):
            with contextlib.suppress(FileNotFoundError):
                found.append(os.readlink(f"{folder}/{name}"))
    except (FileNotFoundError, ProcessLookupError):
        return found
    except OSError:
        return None
    return [path for path in found if path.startswith("/") and not path.startswith(("/dev/", "/proc/"))]
