"""Processes: which are alive, which files they have open, and how to end a session of them.

A process is identified by its pid and when it was born. Which agent a conversation file belongs to, the
kernel shows by who has it open, whatever the file says. `pause_at` freezes this process at a named point,
which is how crashes between two steps are rehearsed.
"""

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator

from agent_relay.system.failures import find_passing

_DEAD_STATES = ("Z", "X", "x")
_STOPPED_STATES = ("T", "t")
# Fields of /proc/<pid>/stat counted from the state, which follows the name in brackets (proc(5)).
_PARENT_FIELD = 1
_SESSION_FIELD = 3
_TERMINAL_FIELD = 4
_BORN_FIELD = 19
_ROUND_S = 0.2


class _Stat:
    """Fields of `/proc/<pid>/stat`. No dataclass: those cost half a holder's start."""

    __slots__ = ("born", "parent", "session", "state", "terminal")

    def __init__(self, state: str, *, parent: int, session: int, terminal: int, born: int) -> None:
        self.state = state
        self.parent = parent
        self.session = session
        self.terminal = terminal
        self.born = born

    @property
    def lives(self) -> bool:
        return self.state not in _DEAD_STATES

    def is_now(self, pid_born: int) -> bool:
        return self.born == pid_born and self.lives


def born(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot (from /proc); `None` if there is none.

    A pid is reused, a pair of pid and birth is not.
    """
    found = _read_stat(pid)
    return None if found is None else found.born


def read_ticks() -> int:
    """Return the time as the kernel tells when processes were born: in clock ticks since boot."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))


def get_age_s(pid_born: int) -> float:
    """Return how many seconds ago a process born then started, the machine's sleep included."""
    return max(0.0, (read_ticks() - pid_born) / os.sysconf("SC_CLK_TCK"))


def is_alive(pid: int, pid_born: int) -> bool:
    """Return whether the process born then still runs; one that only waits to be reaped does not."""
    found = _read_stat(pid)
    return found is not None and found.is_now(pid_born)


def is_frozen(pid: int) -> bool:
    """Return whether a signal (SIGSTOP, SIGTSTP) or a debugger has stopped process `pid`."""
    found = _read_stat(pid)
    return found is not None and found.state in _STOPPED_STATES


def find_parent(pid: int, pid_born: int) -> int:
    """Return the parent of the process born then; 0 if that process is gone."""
    found = _read_stat(pid)
    return found.parent if found is not None and found.is_now(pid_born) else 0


def has_terminal(pid: int) -> bool:
    """Return whether process `pid` has a controlling terminal."""
    found = _read_stat(pid)
    return found is not None and found.terminal != 0


def session_members(sid: int) -> list[tuple[int, int]]:
    """Return every living process of the Unix session `sid`, as (pid, born), oldest first."""
    members = [
        (pid, found.born) for pid, found in _read_all().items() if found.session == sid and found.lives
    ]
    return sorted(members, key=lambda member: (member[1], member[0]))


def children(pid: int) -> list[tuple[int, int]]:
    """Return every living child of process `pid`, as (pid, born), oldest first."""
    return sorted(
        ((child, found.born) for child, found in _read_all().items() if found.parent == pid and found.lives),
        key=lambda member: (member[1], member[0]),
    )


def list_pids() -> list[int]:
    """Return the pid of every process."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def find_family(pid: int) -> Iterator[list[int]]:
    """Yield process `pid`, then its living children, then theirs, one generation at a time.

    Yield nothing if the process is gone.
    """
    stats = _read_all()
    families: dict[int, list[int]] = {}
    for child, one in stats.items():
        families.setdefault(one.parent, []).append(child)
    generation = [pid] if pid in stats and stats[pid].lives else []
    while generation:
        yield sorted(generation)
        generation = [child for one in generation for child in families.pop(one, ()) if stats[child].lives]


def find_marked(name: str, value: str) -> list[tuple[int, int]]:
    """Return every living process of this user that was started with the variable `name` set to `value`.

    As (pid, born), oldest first. Processes started by such a process inherit the mark, in any session.
    """
    mark = f"{name}={value}".encode()
    found = []
    for pid, one in _read_all().items():
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError as error:
            if find_passing(error):
                raise
            continue
        if one.lives and mark in variables:
            found.append((pid, one.born))
    return sorted(found, key=lambda member: (member[1], member[0]))


def read_environ(pid: int) -> dict[str, str]:
    """Return the variables the process was started with; none if they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = os.fsdecode(file.read()).split("\0")
    except OSError:
        return {}
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def end_marked(name: str, value: str, *, limit_s: float = 4.0) -> None:
    """End every process `find_marked` finds, unless it refuses to die; block for at most about `limit_s`."""
    deadline = time.monotonic() + limit_s
    for number in (signal.SIGTERM, signal.SIGKILL):
        members = find_marked(name, value)
        for pid, pid_born in members:
            send_signal(pid, pid_born, number)
            send_signal(pid, pid_born, signal.SIGCONT)
        wait_for_end(members, limit_s=max(0.1, (deadline - time.monotonic()) / 2))


def end_session(
    sid: int,
    leader_born: int,
    *,
    others: Collection[tuple[int, int]] = (),
    polite_s: float = 2.0,
    firm_s: float = 2.0,
    spare: int = 0,
) -> list[int]:
    """Send every process of session `sid` SIGTERM, and SIGKILL after `polite_s`; wait for their end.

    The same is done to `others`, as (pid, born), and to the descendants of any of them: agents run shells in
    sessions of their own. With 0 for `sid` no session is meant, only these. Return the pids that are still
    alive after `firm_s` more (normally none). If `sid` now names a process born at another time than
    `leader_born`, the session is gone and none of its processes is touched. Members born while this runs are
    found by looking again. `spare` is the caller's pid if it is in the session itself. Blocks for at most
    `polite_s + firm_s`: call it in a thread.
    """
    known = set(others)

    def find_members() -> list[tuple[int, int]]:
        return [member for member in _find_members(sid, leader_born, known) if member[0] != spare]

    for number, limit_s in ((signal.SIGTERM, polite_s), (signal.SIGKILL, firm_s)):
        deadline = time.monotonic() + limit_s
        told: set[tuple[int, int]] = set()
        while members := find_members():
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
    return [pid for pid, _ in find_members()]


def _find_members(sid: int, leader_born: int, known: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the living ones of the session and of `known`, oldest first; add their descendants to `known`.

    A process that outlives its parent is known by then. Processes older than the leader are left out: they
    cannot be of its session.
    """
    stats = _read_all()
    leader = stats.get(sid)
    if sid and (leader is None or leader.born == leader_born):
        known |= {
            (pid, one.born) for pid, one in stats.items() if one.session == sid and one.born >= leader_born
        }
    families: dict[int, list[int]] = {}
    for pid, one in stats.items():
        families.setdefault(one.parent, []).append(pid)
    asked = [pid for pid, pid_born in known if pid in stats and stats[pid].born == pid_born]
    while asked:
        for child in families.get(asked.pop(), ()):
            if (child, stats[child].born) not in known:
                known.add((child, stats[child].born))
                asked.append(child)
    living = [member for member in known if member[0] in stats and stats[member[0]].is_now(member[1])]
    return sorted(living, key=lambda member: (member[1], member[0]))


def send_signal(pid: int, pid_born: int, number: signal.Signals) -> bool:
    """Send a Unix signal to the process born then, to no other with its pid; return whether it got it."""
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
    """Wait for the end of all `members` (pid, born); return whether it came within `limit_s` seconds."""
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


@contextlib.contextmanager
def _pinned(pid: int, pid_born: int) -> Iterator[int | None]:
    """Yield a pidfd of the process born then, `None` if it is gone, -1 if the kernel has no pidfds.

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


def _read_all() -> dict[int, _Stat]:
    """Read the state of every process, by pid."""
    found = ((pid, _read_stat(pid)) for pid in list_pids())
    return {pid: one for pid, one in found if one is not None}


def _read_stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            text = file.read(4096)
    except OSError as error:
        # For want of a descriptor nobody is dead: whoever believed that would leave an agent alive.
        if find_passing(error):
            raise
        return None
    # The name may hold brackets and spaces; only the last bracket closes it.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) <= _BORN_FIELD:
        return None
    wanted = (_PARENT_FIELD, _SESSION_FIELD, _TERMINAL_FIELD, _BORN_FIELD)
    parent, session, terminal, born_at = (int(fields[one]) for one in wanted)
    return _Stat(fields[0].decode("ascii"), parent=parent, session=session, terminal=terminal, born=born_at)


def find_open_files(pid: int, is_meant: Callable[[str], bool]) -> frozenset[str] | None:
    """Return the real paths that `is_meant` accepts and process `pid`, or its nearest descendants, has open.

    An agent may start another of its kind in a shell: the nearest process that has such a file open is the
    one asked about. `None` if this cannot be known: the process is gone, or one of them may not be inspected.
    Source: proc(5), /proc/<pid>/fd.
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


def find_open_elsewhere(paths: Collection[str], *, but: int) -> frozenset[str]:
    """Return the real `paths` that are open in a process other than this one, `but` and its descendants."""
    wanted = set(paths)
    if not wanted:
        return frozenset()
    family = {pid for generation in find_family(but) for pid in generation} if but > 0 else set()
    others = (pid for pid in list_pids() if pid not in family and pid != os.getpid())
    return frozenset(path for pid in others for path in list_open(pid) or () if path in wanted)


def list_open(pid: int) -> list[str] | None:
    """Return the real paths of the files process `pid` has open; `None` if it may not be inspected."""
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


PAUSE_VARIABLE = "AGENT_RELAY_PAUSE_AT"
"""Names the point: `before handoff.begun`, `after StopLeg`. Agents never get it: it is a variable of ours."""


def pause_at(point: str) -> None:
    """Stop this process (SIGSTOP) the first time it comes to the point named."""
    if os.environ.get(PAUSE_VARIABLE) == point:
        del os.environ[PAUSE_VARIABLE]
        os.kill(os.getpid(), signal.SIGSTOP)
