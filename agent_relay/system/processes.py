"""Which processes live, told apart by when they were born, and how a session of them is ended."""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass

_DEAD_STATES = ("Z", "X", "x")
# Fields of /proc/<pid>/stat counted from the state, which follows the name in brackets (proc(5)).
_SESSION_FIELD = 3
_BORN_FIELD = 19
_ROUND_S = 0.2


@dataclass(frozen=True, slots=True)
class _Stat:
    state: str
    session: int
    born: int


def born(pid: int) -> int | None:
    """When process `pid` started, in clock ticks since boot (from /proc); `None` where there is none.

    A pid is reused, a pair of pid and birth is not.
    """
    found = _read_stat(pid)
    return None if found is None else found.born


def is_alive(pid: int, pid_born: int) -> bool:
    """Whether the process born then still runs; one that only waits to be reaped does not."""
    found = _read_stat(pid)
    return found is not None and found.born == pid_born and found.state not in _DEAD_STATES


def session_members(sid: int) -> list[tuple[int, int]]:
    """Every living process of the Unix session `sid`, as (pid, born), oldest first."""
    members: list[tuple[int, int]] = []
    for name in os.listdir("/proc"):
        found = _read_stat(int(name)) if name.isdigit() else None
        if found is not None and found.session == sid and found.state not in _DEAD_STATES:
            members.append((int(name), found.born))
    return sorted(members, key=lambda member: (member[1], member[0]))


def end_session(sid: int, leader_born: int, *, polite_s: float = 2.0, firm_s: float = 2.0) -> list[int]:
    """Every process of session `sid` got SIGTERM, and after `polite_s` SIGKILL; waits for their end.

    Returns the pids that still live after `firm_s` more (normally none). Where `sid` now names a process
    born at another time than `leader_born`, the session is gone and nobody is touched. Members born while
    this runs are found by looking again. Blocks for at most `polite_s + firm_s`: call it in a thread.
    """
    leader = born(sid)
    if leader is not None and leader != leader_born:
        return []
    for number, limit_s in ((signal.SIGTERM, polite_s), (signal.SIGKILL, firm_s)):
        deadline = time.monotonic() + limit_s
        told: set[tuple[int, int]] = set()
        while members := _members_since(sid, leader_born):
            new = [member for member in members if member not in told]
            for pid, pid_born in new:
                send_signal(pid, pid_born, number)
                # A stopped process does not hear SIGTERM before it is continued.
                send_signal(pid, pid_born, signal.SIGCONT)
            told.update(new)
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                break
            wait_for_end(members, limit_s=min(left_s, _ROUND_S))
    return [pid for pid, _ in _members_since(sid, leader_born)]


def send_signal(pid: int, pid_born: int, number: signal.Signals) -> bool:
    """Whether the process born then got the Unix signal; never reaches another that took over its pid."""
    with _pinned(pid, pid_born) as handle:
        if handle is None:
            return False
        try:
            if handle >= 0:
                signal.pidfd_send_signal(handle, number)
            else:
                os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def wait_for_end(members: list[tuple[int, int]], *, limit_s: float) -> bool:
    """Whether all of `members` (pid, born) ended within `limit_s` seconds."""
    deadline = time.monotonic() + limit_s
    for pid, pid_born in members:
        with _pinned(pid, pid_born) as handle:
            if handle is None:
                continue
            left_s = max(0.0, deadline - time.monotonic())
            if handle < 0:
                _poll_for_end(pid, pid_born, limit_s=left_s)
            else:
                poll = select.poll()
                poll.register(handle, select.POLLIN)
                poll.poll(int(left_s * 1000) + 1)
        if is_alive(pid, pid_born):
            return False
    return True


def _poll_for_end(pid: int, pid_born: int, *, limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while is_alive(pid, pid_born) and time.monotonic() < deadline:
        time.sleep(0.01)  # kernels without pidfd offer no other way to wait for a stranger


def _members_since(sid: int, leader_born: int) -> list[tuple[int, int]]:
    """Without those older than the leader: they cannot be of its session."""
    return [member for member in session_members(sid) if member[1] >= leader_born]


@contextlib.contextmanager
def _pinned(pid: int, pid_born: int) -> Iterator[int | None]:
    """A pidfd of the process born then, `None` where it is gone, -1 where the kernel has no pidfds.

    Its birth is compared after opening: from then on the descriptor can mean no other process.
    """
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        yield None
        return
    except OSError as error:
        if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.EMFILE):
            raise
        handle = -1
    try:
        yield handle if is_alive(pid, pid_born) else None
    finally:
        if handle >= 0:
            os.close(handle)


def _read_stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError:
        return None
    # The name may hold brackets and spaces; only the last bracket closes it.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) <= _BORN_FIELD:
        return None
    return _Stat(fields[0].decode("ascii"), int(fields[_SESSION_FIELD]), int(fields[_BORN_FIELD]))
