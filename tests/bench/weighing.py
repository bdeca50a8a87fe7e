"""What a program and everything it starts take of memory at most, each shared page counted once."""

import contextlib
import subprocess
import time
from collections.abc import Mapping

_LOOK_S = 0.005
_KB = 1024


def weigh(words: list[str], environ: Mapping[str, str], cwd: str) -> float:
    """The largest sum of the proportional set sizes (PSS) seen in one run, in MB; looked at every 5 ms.

    Source: `Pss` in proc(5)'s smaps_rollup. Looking slows the program, so that its time is taken elsewhere.
    """
    child = subprocess.Popen(
        words,
        cwd=cwd,
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    most = 0
    while child.poll() is None:
        most = max(most, sum(_read_pss(pid) for pid in _list_tree(child.pid)))
        time.sleep(_LOOK_S)
    return most / _KB


def _list_tree(pid: int) -> list[int]:
    found = [pid]
    for one in found:
        with contextlib.suppress(OSError), open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
            found += [int(word) for word in file.read().split()]
    return found


def _read_pss(pid: int) -> int:
    """In kB; 0 for a process that is gone."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return 0
