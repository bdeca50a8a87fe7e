"""Open a pseudo-terminal and start a program on it in a session of its own; errors are reported at once."""

import fcntl
import os
import struct
import termios

from agent_relay.system.spawn import find_program, spawn_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.system.spawn import FileAction

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
