"""The end of a test's world: what belongs to it is killed, its folder is removed, and nothing comes back."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterable

from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.processes import list_open, list_pids

_END_S = 60.0
"""How long the end of killed processes may take; one may wait for a disk with much to do."""
_ZOMBIE = b"Z"


def find_belonging(folder: str, *, home: str, legs: str, pids: Iterable[int] | None = None) -> dict[int, str]:
    """Every other living process with that HOME, `legs` in its command line, or a leg below `folder` to hold.

    By pid, with its command line; of `pids` where they are given, and else of all.
    """
    mark, named = f"HOME={home}".encode(), legs.encode()
    found: dict[int, str] = {}
    for pid in list_pids() if pids is None else pids:
        command = _read(pid, "cmdline")
        if not command or pid == os.getpid():
            continue
        if mark in _read(pid, "environ").split(b"\0") or named in command or is_holder(pid, folder):
            found[pid] = command.replace(b"\0", b" ").decode("utf-8", "replace")
    return found


def is_holder(pid: int, folder: str) -> bool:
    """Whether this is the holder of a leg below that folder: its environment is empty, its lock is not.

    It opens and closes other files all the time: that one is gone when it is looked at means nothing.
    """
    return any(path.startswith(f"{folder}/") and "/legs/" in path for path in list_open(pid) or ())


def find_children(parents: Iterable[int]) -> set[int]:
    """The processes that one of `parents` started and still has."""
    wanted = set(parents)
    return {pid for pid in list_pids() if (stat := _read_stat(pid)) and int(stat[1]) in wanted}


def list_roots(pids: Collection[int]) -> set[int]:
    """Those of `pids` that still run and that none of the others started.

    Each is asked for its parent: one that ended since it was listed is left out, whoever started it.
    """
    stats = ((pid, _read_stat(pid)) for pid in pids)
    return {pid for pid, stat in stats if stat and stat[0] != _ZOMBIE and int(stat[1]) not in pids}


def end_world(folder: str, find: Callable[[], dict[int, str]]) -> None:
    """Kill what `find` finds and remove the folder. Fail if anything of the world is there after that."""
    end_processes(find)
    remove_tree(folder)
    late = find()
    end_processes(find)
    remove_tree(folder)
    assert not late, f"outlived the world in {folder}: {late}"


def end_processes(find: Callable[[], dict[int, str]]) -> None:
    """Kill what `find` finds, with its children, until it finds nothing more."""
    while found := find():
        # A holder that was only just begun is known by its parent alone, which must not begin more.
        for pid in found:
            _send(pid, signal.SIGSTOP)
        killed = {*found, *find_children(found)}
        for pid in killed:
            _send(pid, signal.SIGKILL)
        # A daemon with a thread that still waits for its disk would be told how a holder's start went, and
        # that holder stay.
        _wait_for_end(killed)


def _wait_for_end(pids: Iterable[int]) -> None:
    deadline = time.monotonic() + _END_S
    while left := [pid for pid in pids if not _has_ended(pid)]:
        assert time.monotonic() < deadline, f"killed {_END_S:g} s ago and still there: {left}"
        time.sleep(0.005)


def _has_ended(pid: int) -> bool:
    """Whether every thread of the process has ended, so that nothing of its is open any more."""
    stat = _read_stat(pid)
    return not stat or (stat[0] == _ZOMBIE and int(stat[17]) <= 1)


def _read_stat(pid: int) -> list[bytes]:
    """The fields of the process's `stat` from its state on, which follows the name in brackets (proc(5))."""
    return _read(pid, "stat").rpartition(b")")[2].split()


def _read(pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()
    return b""


def _send(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
