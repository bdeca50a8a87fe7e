"""Find agents that people started themselves and that have a conversation open, and end them."""

import os
import signal
import time
from datetime import datetime, timedelta

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values.environment import LEG_VARIABLE
from agent_relay.system.processes import born, get_age_s, list_open, list_pids, send_signal, wait_for_end

_SLACK = timedelta(seconds=2)
"""A process's start is known in hundredths of a second since boot, and the boot itself to a second."""
_POLITE_S = 8.0
_FIRM_S = 3.0
_MARK = f"{LEG_VARIABLE}=".encode()


def find_holding(path: str) -> list[tuple[int, int]]:
    """List the processes that have the file open, as (pid, born), without those that relay started.

    Source: proc(5), /proc/<pid>/fd.
    """
    wanted = os.path.realpath(path)
    return _list_foreign([pid for pid in list_pids() if wanted in (list_open(pid) or ())])


def find_running(program: str, cwd: str, *, by: datetime, now: datetime) -> list[tuple[int, int]]:
    """List who runs `program` in `cwd` and began `by` then, as (pid, born); not what relay started."""
    folder = os.path.realpath(cwd)
    found = _list_foreign([pid for pid in list_pids() if _is_at(pid, folder) and _runs(pid, program)])
    return [one for one in found if now - timedelta(seconds=get_age_s(one[1])) <= by + _SLACK]


def end_programs(found: list[tuple[int, int]]) -> None:
    """End the processes with SIGTERM, then SIGKILL. Blocks.

    Raises RelayError if one does not end.
    """
    began = time.monotonic()
    for number, limit_s in ((signal.SIGTERM, _POLITE_S), (signal.SIGKILL, _FIRM_S)):
        for pid, pid_born in found:
            send_signal(pid, pid_born, number)
        if wait_for_end(found, limit_s=limit_s):
            return
    names = ", ".join(str(pid) for pid, _ in found)
    raise RelayError(f"process {names} did not end within {time.monotonic() - began:.0f} s")


def _list_foreign(pids: list[int]) -> list[tuple[int, int]]:
    known = ((pid, born(pid)) for pid in pids if pid != os.getpid() and not _is_ours(pid))
    return [(pid, pid_born) for pid, pid_born in known if pid_born is not None]


def _is_ours(pid: int) -> bool:
    """Check whether relay started the process, or it is another user's and cannot be inspected."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return any(entry.startswith(_MARK) for entry in file.read().split(b"\0"))
    except OSError:
        return True


def _is_at(pid: int, folder: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/cwd") == folder
    except OSError:
        return False


def _runs(pid: int, program: str) -> bool:
    """Check whether the process's command is the program, or an interpreter with it.

    Programs may give themselves a title.
    """
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            words = file.read(8192).split(b"\0")[:2]
    except OSError:
        return False
    name, real = os.path.basename(program), os.path.realpath(program)
    for word in map(os.fsdecode, words):
        if word == name or (os.path.isabs(word) and os.path.realpath(word) == real):
            return True
    return False
