"""The script that agents call: store one hook payload or status line, and never disturb the agent.

Run as `python -I -S hook.py hooks FOLDER`, `… unmanaged FOLDER RUNTIME` (by an agent that relay did not
start) or `… status-line FOLDER [-- COMMAND…]`, by its path: nothing of the package is imported, so that it
costs hardly more than an empty Python. Whatever happens, `hooks` and `unmanaged` print nothing and exit 0;
`status-line` becomes the user's own command, with the stdin it expects.
"""

import os
import sys
import time

MAX_PAYLOAD_BYTES = 1 << 20
MAX_HOOKS_BYTES = 64 << 20
MAX_STATUS_BYTES = 256 << 10
MAX_UNMANAGED_BYTES = 1 << 20
MAX_STDIN_BYTES = 64 << 20
MAX_STDIN_S = 5.0
SAFE_PIPE_BYTES = 16 << 10  # the smallest buffer a pipe starts with on the systems we know
# The variables of whoever starts a daemon, as in `client.autostart`: a test compares them.
KEPT = ("HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP")
KEPT_PREFIXES = ("LC_", "XDG_", "AGENT_RELAY_")
DROPPED = ("AGENT_RELAY_LEG", "AGENT_RELAY_RACE")

_REGULAR, _TYPE = 0o100000, 0o170000
_OPEN = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def main(arguments: list[str]) -> int:
    """Store what stdin holds; return 0, unless the user's own command replaces this process."""
    command: list[str] = []
    payload = b""
    try:
        what, folder, *rest = arguments
        if rest[:1] == ["--"]:
            command = rest[1:]
        payload = _read_stdin(MAX_STDIN_BYTES if command else MAX_PAYLOAD_BYTES + 1)
        if what == "hooks":
            _keep_hook(folder, payload)
        elif what == "status-line":
            _keep_newest(folder, "status.jsonl", payload, MAX_STATUS_BYTES)
        elif what == "unmanaged":
            _keep_newest(folder, "hooks.jsonl", payload, MAX_UNMANAGED_BYTES)
            _start_daemon(*rest)
    except (OSError, ValueError, TypeError, MemoryError, KeyboardInterrupt):
        pass  # the agent's work matters more than our evidence; other sources remain
    if command:
        _become(command, payload)
    return 0


def build_line(payload: bytes, seconds: float) -> bytes:
    """Return the record of one payload on one line: `{"at": …, "payload": {…}}`.

    `seconds` is the time since the epoch. A raw newline can only occur between a JSON text's tokens, where a
    space means the same. A payload that does not look like an object, or is longer than a mebibyte, is
    recorded without its contents.
    """
    at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{int(seconds % 1 * 1000):03}Z"
    text = payload.strip().replace(b"\r", b" ").replace(b"\n", b" ")
    if len(payload) > MAX_PAYLOAD_BYTES:
        rest = b'"truncated":true'
    elif text[:1] == b"{" and text[-1:] == b"}":
        rest = b'"payload":' + text
    else:
        rest = b'"unreadable":true'
    return b'{"at":"' + at.encode() + b'",' + rest + b"}\n"


def _read_stdin(keep: int) -> bytes:
    """Return the first `keep` bytes of stdin; read the rest too, so that the writer meets no broken pipe.

    If stdin is never closed or never ends, return what came until the limit of time or size.
    """
    import select  # not built into every Python, and not needed where stdin is a terminal

    if os.isatty(0):
        return b""
    parts = []
    size = 0
    deadline = time.monotonic() + MAX_STDIN_S
    while size < MAX_STDIN_BYTES:
        ready, _, _ = select.select([0], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(0, 1 << 16) if ready else b""
        if not part:
            break
        if size < keep:
            parts.append(part[: keep - size])
        size += len(part)
    return b"".join(parts)


def _keep_hook(folder: str, payload: bytes) -> None:
    line = build_line(payload, time.time())
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    file, size = _open(directory, "hooks.jsonl")
    if size + len(line) > MAX_HOOKS_BYTES:
        line = build_line(b"", time.time())
    _append(file, size, line)


def _keep_newest(folder: str, name: str, payload: bytes, most: int) -> None:
    """Append the payload to the file; if that would have more than `most` bytes, replace it by this line."""
    line = build_line(payload, time.time())
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    file, size = _open(directory, name)
    if not size or size + len(line) <= most:
        _append(file, size, line)
        return
    fresh = f"{name}.{os.getpid()}"
    try:
        file, size = _open(directory, fresh)
        _append(file, size, line)
        os.rename(fresh, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(fresh, dir_fd=directory)


def _start_daemon(runtime: str) -> None:
    """Start the daemon in the background if none listens, unless the last one was stopped on purpose.

    One that is busy, or hangs, listens. Nothing is waited for.
    """
    import _socket  # `socket` itself costs as much as all the rest

    if os.path.lexists(f"{runtime}/stopped"):
        return
    listening = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM | _socket.SOCK_NONBLOCK)
    try:
        listening.connect(f"{runtime}/daemon.sock")
    except BlockingIOError:
        return  # its queue is full
    except OSError:
        program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "daemon", "__main__.py")
        kept = {name: value for name, value in os.environ.items() if _is_kept(name)}
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0),
            (os.POSIX_SPAWN_DUP2, 0, 1),
            (os.POSIX_SPAWN_DUP2, 0, 2),
        ]
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", program, "--detached"],
            kept,
            file_actions=streams,
            setsid=True,
        )


def _is_kept(name: str) -> bool:
    """Check whether the daemon gets the variable: it outlives the agent."""
    return name in KEPT or (name.startswith(KEPT_PREFIXES) and name not in DROPPED)


def _open(directory: int, name: str) -> tuple[int, int]:
    """Return the file to append to, and its size; raise OSError unless it is a regular file in the folder."""
    file = os.open(name, _OPEN, 0o600, dir_fd=directory)
    found = os.fstat(file)
    if found.st_mode & _TYPE != _REGULAR:
        raise OSError("not a regular file")
    return file, found.st_size


def _append(file: int, size: int, line: bytes) -> None:
    """Append the line in one write, so that hooks running at once never mix their lines.

    A line that an earlier full disk cut off is closed first, so that it does not swallow this one.
    """
    if size and os.pread(file, 1, size - 1) != b"\n":
        line = b"\n" + line
    written = os.write(file, line)
    if written < len(line):
        os.write(file, line[written:])


def _become(command: list[str], payload: bytes) -> None:
    """Replace this process by the user's own status line command, with the same bytes on its stdin.

    Python ignores two Unix signals, SIGPIPE and SIGXFSZ, that a program expects at their defaults.
    """
    import signal

    try:
        _feed(payload)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execvp(command[0], command)  # noqa: S606 - becoming the command is the point
    except (OSError, ValueError):
        return


def _feed(payload: bytes) -> None:
    """Make the bytes readable on stdin; a child process writes what a pipe may not hold at once."""
    source, sink = os.pipe()
    if len(payload) > SAFE_PIPE_BYTES and os.fork() == 0:
        os.close(source)
        try:
            while payload:
                payload = payload[os.write(sink, payload) :]
        finally:
            os._exit(0)
    if len(payload) <= SAFE_PIPE_BYTES:
        os.write(sink, payload)
    os.close(sink)
    os.dup2(source, 0)
    os.set_inheritable(0, True)


if __name__ == "__main__":
    try:
        status = main(sys.argv[1:])
    except BaseException:  # noqa: BLE001 - the last line of defence: a hook must never fail its agent
        status = 0
    os._exit(status)
