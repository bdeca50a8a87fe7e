"""The person's terminal in a benchmark: a PTY on which a wrapper runs a program."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time

ROWS, COLS = 40, 120
LIMIT_S = 60.0
READ_BYTES = 1 << 16


class LateError(Exception):
    """What was waited for did not come; what came last is in the message."""


class Session:
    """One program on one terminal, through a wrapper or not.

    `pid` is whatever runs on our terminal, started as `program`; `pid_path` is where the program under it
    says its own pid, empty where it does not.
    """

    def __init__(self, argv: list[str], *, env: dict[str, str], pid_path: str, cwd: str) -> None:
        self.program = argv[0]
        self.pid_path = pid_path
        self.cwd = cwd
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLS, 0, 0))
                os.chdir(cwd)
                os.execvpe(argv[0], argv, env)  # noqa: S606 - a terminal of its own, not a shell
            finally:
                os._exit(127)
        os.set_blocking(self.fd, False)
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)
        self._drainer = 0

    @property
    def program_pid(self) -> int:
        """The pid of the program itself."""
        with open(self.pid_path, encoding="ascii") as file:
            return int(file.read())

    def read(self, wait_s: float) -> bytes:
        """What the terminal gets next; nothing where nothing comes in that time or the terminal is gone."""
        if not self._poll.poll(wait_s * 1000):
            return b""
        try:
            return os.read(self.fd, READ_BYTES)
        except OSError:
            return b""

    def wait_for(self, mark: bytes, limit_s: float = LIMIT_S) -> bytes:
        """Everything up to `mark` on the terminal, or a little more. Raises LateError."""
        seen = bytearray()
        looked = 0
        deadline = time.monotonic() + limit_s
        while (at := seen.find(mark, max(0, looked - len(mark)))) < 0:
            looked = len(seen)
            data = self.read(max(0.0, deadline - time.monotonic()))
            if not data:
                raise LateError(
                    f"{mark!r} did not come; the last of {len(seen)} bytes: {bytes(seen[-200:])!r}"
                )
            seen += data
        return bytes(seen[: at + len(mark)])

    def count_until(self, mark: bytes, limit_s: float = LIMIT_S) -> int:
        """As `wait_for`, for floods: only the number of bytes is kept."""
        tail = b""
        count = 0
        deadline = time.monotonic() + limit_s
        while mark not in tail:
            data = self.read(max(0.0, deadline - time.monotonic()))
            if not data:
                raise LateError(f"{mark!r} did not come after {count} bytes: {tail[-200:]!r}")
            count += len(data)
            tail = tail[-len(mark) :] + data
        return count

    def type(self, data: bytes) -> None:
        """Press a few keys."""
        os.write(self.fd, data)

    def drain(self) -> None:
        """Leave the reading to another process from now on."""
        self._drainer = os.fork()
        if self._drainer == 0:
            os.set_blocking(self.fd, True)
            try:
                while os.read(self.fd, READ_BYTES):
                    pass
            finally:
                os._exit(0)

    def close(self) -> None:
        """End everything on this terminal."""
        program = self.program_pid if self.pid_path else 0
        for pid in {program, self.pid, self._drainer} - {0}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.close(self.fd)
        for pid in {self.pid, self._drainer} - {0}:
            os.waitpid(pid, 0)
