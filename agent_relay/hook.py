"""The script that agents call: store one hook payload or status line, and never disturb the agent.

Run as `python -I -S hook.py hooks FOLDER` or `python -I -S hook.py status-line FOLDER [-- COMMAND…]`, by its
path: nothing of the package is imported, so that it costs hardly more than an empty Python. Whatever
happens, `hooks` prints nothing and exits 0; `status-line` becomes the user's own command, with the stdin it
expects.
"""

import os
import sys
import time

MAX_PAYLOAD_BYTES = 1 << 20
MAX_HOOKS_BYTES = 64 << 20
MAX_STATUS_BYTES = 256 << 10
MAX_STDIN_BYTES = 64 << 20
MAX_STDIN_S = 5.0
SAFE_PIPE_BYTES = 16 << 10  # the smallest buffer a pipe starts with on the systems we know

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
            _keep_status(folder, payload)
    except (OSError, ValueError, MemoryError, KeyboardInterrupt):
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


def _keep_status(folder: str, payload: bytes) -> None:
    """Append the status; if the file is full, replace it by one that holds just this line.

    Only the latest status counts.
    """
    line = build_line(payload, time.time())
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    file, size = _open(directory, "status.jsonl")
    if not size or size + len(line) <= MAX_STATUS_BYTES:
        _append(file, size, line)
        return
    fresh = f"status.jsonl.{os.getpid()}"
    try:
        file, size = _open(directory, fresh)
        _append(file, size, line)
        os.rename(fresh, "status.jsonl", src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        os.unlink(fresh, dir_fd=directory)


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
