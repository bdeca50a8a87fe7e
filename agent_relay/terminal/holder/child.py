"""Start and end the program a holder runs: its pseudo-terminal, Unix session, and the record of its end."""

import contextlib
import fcntl
import json
import os
import signal
import struct
import termios

from agent_relay.system.processes import children, end_session, send_signal, session_members
from agent_relay.system.spawn import find_program, spawn_program

TYPE_CHECKING = False

if TYPE_CHECKING:
    from agent_relay.system.spawn import FileAction
    from agent_relay.terminal.holder.wire import HolderSpec

IUTF8 = 0x4000


def open_pty(*, rows: int, cols: int, width_px: int = 0, height_px: int = 0) -> tuple[int, int]:
    """Open a pseudo-terminal of that size; return non-blocking master and slave, both close-on-exec."""
    master, slave = os.openpty()
    try:
        set_size(master, rows=rows, cols=cols, width_px=width_px, height_px=height_px)
        modes = termios.tcgetattr(slave)
        modes[0] |= IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, modes)
        os.set_blocking(master, False)
    except OSError:
        os.close(master)
        os.close(slave)
        raise
    return master, slave


def set_size(fd: int, *, rows: int, cols: int, width_px: int = 0, height_px: int = 0) -> None:
    """Set the terminal's size; its foreground processes get SIGWINCH if it had another."""
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, width_px, height_px))


def count_unread(slave: int) -> int:
    """Return how many typed bytes the programs on this terminal have not read yet."""
    (unread,) = struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))
    return int(unread)


def spawn(
    argv: list[str],
    *,
    env: dict[str, str],
    cwd: str,
    slave: int,
    given: int = -1,
    streams: "list[str] | None" = None,
) -> int:
    """Start `argv` in `cwd` as leader of a new session whose terminal is `slave`; return its pid.

    With `streams`, paths of files to append to, it has these and no terminal, and reads from the descriptor
    `given`, whose file offset it shares.

    `argv[0]` without a slash is looked up in `env["PATH"]`. Raise OSError (with the file's name) if the
    folder or the program cannot be used; nothing runs then. Changes this process's folder to `/` afterwards:
    for a process with one thread and no other use for it.
    """
    actions = _use_files(given, *streams) if streams else _use_terminal(os.ttyname(slave))
    try:
        os.chdir(cwd)
        program = find_program(argv[0], env.get("PATH", os.defpath))
        return spawn_program(program, argv, env, actions=actions)
    finally:
        os.chdir("/")


def _use_terminal(name: str) -> "list[FileAction]":
    return [
        # Opened by name, not inherited: the first terminal a session leader opens becomes its own.
        (os.POSIX_SPAWN_OPEN, 0, name, os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]


def _use_files(given: int, output: str, errors: str) -> "list[FileAction]":
    add = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    return [
        (os.POSIX_SPAWN_DUP2, given, 0),
        (os.POSIX_SPAWN_OPEN, 1, output, add, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, errors, add, 0o600),
    ]


EXIT_FILE = "exit.json"
LEFT_FILE = "left"
"""File in the leg's folder: a line of pid and birth for each process that left the agent while that lived."""
UNASKED_FILE = "unasked"
"""Exists in the folder of a leg whose program was ended before it had read or written anything."""
# An answer should stay small; a huge screen gives up its oldest rows.
_EXIT_BYTES = 60 << 10
_BORN_FIELD = 19
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class Child:
    """A living child, or one that ended and is kept unreaped, so that its pid still names the session.

    `exit` is `None` while it lives, then (status as a shell reports it, Unix signal or 0).
    """

    __slots__ = ("_folder", "_given", "_left", "_said", "born", "exit", "pid", "pidfd")

    def __init__(self, spec: "HolderSpec", *, slave: int) -> None:
        self._said = spec.streams[1:]
        self._given = os.open(spec.streams[0], os.O_RDONLY | os.O_CLOEXEC) if spec.streams else -1
        # Before the start: children orphaned in the agent's first milliseconds would otherwise go to init.
        _adopt_orphans()
        self.pid = spawn(
            spec.argv, env=spec.env, cwd=spec.cwd, slave=slave, given=self._given, streams=self._said
        )
        self.pidfd = os.pidfd_open(self.pid)
        self.born = _read_born(self.pid)
        self.exit: tuple[int, int] | None = None
        self._folder = spec.leg_folder
        self._left: set[tuple[int, int]] = set()

    def see_end(self) -> bool:
        """Return whether the child has ended; if so, set `exit`."""
        ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        if ended is None:
            return False
        killed = ended.si_code in (os.CLD_KILLED, os.CLD_DUMPED)
        self.exit = (128 + ended.si_status, ended.si_status) if killed else (ended.si_status, 0)
        return True

    def signal(self, name: str) -> int:
        """Send a Unix signal to every process of the child's session; return how many got it.

        Agents start themselves anew and run helpers in other process groups: the leader alone is not enough.
        Raise ValueError for a name that is no signal.
        """
        try:
            number = signal.Signals[name]
        except KeyError as error:
            raise ValueError(f"{name} is no Unix signal") from error
        told: set[tuple[int, int]] = set()
        while new := [member for member in session_members(self.pid) if member not in told]:
            for pid, born in new:
                send_signal(pid, born, number)
                if number in (signal.SIGTERM, signal.SIGHUP):
                    send_signal(pid, born, signal.SIGCONT)
            told.update(new)
            if number != signal.SIGKILL:
                break
        return len(told)

    def reap(self) -> None:
        """Reap an ended child, so that not even its pid is left."""
        os.close(self.pidfd)
        if self._given >= 0:
            os.close(self._given)
            self._given = -1
        os.waitpid(self.pid, 0)

    def see_leaving(self) -> None:
        """Note which processes left the agent while it lives: a database or a terminal server it started.

        Such a process outlives an agent that is run directly, and so it does here. Those that ended are
        reaped.
        """
        found = [pid for pid in _read_children() if pid != self.pid]
        if self.see_end():
            return
        for pid in found:
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG) is None:
                self._note_left((pid, _read_born(pid)))

    def _note_left(self, member: tuple[int, int]) -> None:
        """Note a process that left, also for whoever cleans up after the agent if this holder is killed."""
        if member in self._left:
            return
        self._left.add(member)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
        # Where the disk refuses, it is ended with the agent by whoever finds this holder killed.
        with contextlib.suppress(OSError):
            note = os.open(f"{self._folder}/{LEFT_FILE}", flags, 0o600)
            try:
                os.write(note, b"%d %d\n" % member)
            finally:
                os.close(note)

    def withdraw(self, folder: str) -> None:
        """End the child and all its processes; note in `folder` if it had not been asked anything by then.

        Its prompt is its input. One of the agents reads that in a way that leaves no trace, but prints
        something before it sends a request.
        """
        left = self.end_session()
        if left or self._given < 0 or os.lseek(self._given, 0, os.SEEK_CUR):
            return
        try:
            if not any(os.stat(path).st_size for path in self._said):
                os.close(os.open(f"{folder}/{UNASKED_FILE}", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError:
            # Then it may have been asked, as far as anybody can tell.
            return

    def end_session(self) -> list[int]:
        """End what the ended child left behind; return the pids that survived. Block up to 4 s.

        That is its Unix session, and the processes that lost a parent by its end: shells in sessions of their
        own.
        """
        orphans = [one for one in children(os.getpid()) if one[0] != self.pid and one not in self._left]
        return end_session(self.pid, self.born, others=orphans)


def _adopt_orphans() -> None:
    """Make processes whose parent ends children of this one, if the kernel can do that."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _read_children() -> list[int]:
    """Return the pids of this process's children, those that wait to be reaped included."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", "rb", buffering=0) as file:
            return [int(word) for word in file.read(1 << 16).split()]
    except OSError:
        return [pid for pid, _ in children(os.getpid())]


def _read_born(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
        text = file.read(4096)
    return int(text[text.rfind(b")") + 2 :].split()[_BORN_FIELD])


def build_exit(child: Child, *, total_bytes: int, screen: dict[str, object] | None) -> dict[str, object]:
    """Build the record of the child's end, as `collect` answers it; `screen` may be cut to its last rows."""
    status, number = child.exit or (-1, 0)
    record: dict[str, object] = {
        "status": status,
        "signal": number,
        "total_bytes": total_bytes,
        "screen": screen,
    }
    rows = list(screen["rows"]) if screen and isinstance(screen["rows"], list) else []
    while screen and rows and len(json.dumps(record, ensure_ascii=False).encode()) > _EXIT_BYTES:
        del rows[: len(rows) // 4 + 1]
        record["screen"] = {**screen, "rows": rows}
    return record


def store_exit(folder: str, record: dict[str, object]) -> bool:
    """Write `exit.json` to the folder, whole and durable; return false if the disk refuses.

    The screen stays in memory: it may show what nobody wants on a disk.
    """
    kept = {name: value for name, value in record.items() if name != "screen"}
    fresh = f"{folder}/.{EXIT_FILE}"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with open(fd, "wb") as file:
            file.write(json.dumps(kept).encode())
            file.flush()
            os.fsync(file.fileno())
        os.rename(fresh, f"{folder}/{EXIT_FILE}")
        directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError:
        return False
    return True
