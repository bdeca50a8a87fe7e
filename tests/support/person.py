"""A person at a terminal for tests: a real PTY with an emulator behind it, running one program."""

import contextlib
import os
import select
import signal
import sys
import termios
import time
from collections.abc import Callable, Iterator

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.child import open_pty, set_size, spawn
from tests.support.legs import LIMIT_S
from tests.support.preloaded import Command, Process

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CLIENT = """
import sys
sys.path.insert(0, sys.argv[1])
from agent_relay.client.attach.loop import attach
from agent_relay.client.attach.tty import UserTerminal
def obey(line):
    if line == "/long":
        return [f"row {number} of the long answer" for number in range(1, 101)]
    return [] if line == "/quiet" else ["said " + line, "\\x1b[31mharmless"]
terminal = UserTerminal()
if sys.argv[3] == "socket":
    terminal.is_single = False
with terminal:
    outcome = attach(sys.argv[2], relay_key=0x1D, on_relay_key=obey, terminal=terminal)
print("outcome", outcome.why, outcome.status, flush=True)
"""


def client(socket: str, *, way: str = "tty") -> list[str]:
    """The arguments of a client attaching to a holder, its terminal passed (`tty`) or not (`socket`)."""
    return [sys.executable, "-I", "-S", "-c", CLIENT, ROOT, socket, way]


class Person:
    """Sits at a terminal of that size on which `argv` runs; `pid` is the program's."""

    def __init__(self, argv: list[str] | Command, *, rows: int = 24, cols: int = 80) -> None:
        self.master, self.slave = open_pty(rows=rows, cols=cols)
        self.before = termios.tcgetattr(self.slave)
        self.emulator = Emulator(find_library() or "", cols, rows)
        self.received = bytearray()
        self.answers = True
        self._command: Process | None = None
        if isinstance(argv, Command):
            self._command = argv.start_at(self.slave)
            self.pid = self._command.pid
            return
        here = os.getcwd()
        try:
            self.pid = spawn(argv, env={**os.environ, "TERM": "xterm-256color"}, cwd=here, slave=self.slave)
        finally:
            os.chdir(here)

    def look(self, wait_s: float = 0.01) -> None:
        """Read what the program wrote, if it comes within `wait_s`; answer its questions."""
        poll = select.poll()
        poll.register(self.master, select.POLLIN)
        if not poll.poll(wait_s * 1000):
            return
        with contextlib.suppress(BlockingIOError, OSError):
            data = os.read(self.master, 1 << 16)
            self.received += data
            self.emulator.feed(data)
            replies = self.emulator.take_replies()
            if replies and self.answers:
                os.write(self.master, replies)

    def wait_until(self, seen: Callable[[], bool], what: str) -> None:
        """Look until something is so; fails with what it was and what the screen shows instead."""
        deadline = time.monotonic() + LIMIT_S
        while not seen():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited for {what}; the screen shows:\n" + self.text())
            self.look()

    def text(self) -> str:
        """The screen's rows."""
        return "\n".join(self.emulator.text()).rstrip()

    def wait_for(self, text: str) -> None:
        """Look until the screen shows `text`."""
        self.wait_until(lambda: text in self.text(), repr(text))

    def type(self, data: bytes, shows: str = "") -> None:
        """Press keys, or paste: as much as it takes, reading meanwhile as a terminal does.

        Then look until the screen `shows` that.
        """
        while data:
            with contextlib.suppress(BlockingIOError):
                data = data[os.write(self.master, data) :]
            self.look(0)
        if shows:
            self.wait_for(shows)

    def press(self, key: bytes, seen: Callable[[], bool], what: str = "the key to count") -> None:
        """Press `key` until it counts: one that comes right after another, or a screen, is not meant for it.

        It is pressed once at least: a screen that is half painted looks like another one.
        """
        again = 0.0

        def look() -> bool:
            nonlocal again
            if again and seen():
                return True
            if time.monotonic() >= again:
                self.type(key)
                again = time.monotonic() + 3
            return False

        self.wait_until(look, what)

    def resize(self, rows: int, cols: int) -> None:
        """Change the window's size."""
        self.emulator.resize(cols, rows)
        set_size(self.master, rows=rows, cols=cols)

    def wait_for_end(self) -> int:
        """The program's status as a shell reports it, once it ended and all it wrote was read."""
        deadline = time.monotonic() + LIMIT_S
        while True:
            code = self.poll()
            self.look()
            if code is not None:
                while select.select([self.master], [], [], 0.15)[0]:
                    self.look(0)
                return code if code >= 0 else 128 - code
            if time.monotonic() > deadline:
                raise AssertionError("the program did not end; the screen shows:\n" + self.text())

    def poll(self) -> int | None:
        """The program's exit status, negative for a signal; `None` while it runs."""
        if self._command is not None:
            return self._command.poll()
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if pid else None

    def close(self) -> None:
        """The terminal is gone, and the program with it."""
        if self._command is not None:
            self._command.kill()
            self._command.wait()
            os.close(self.master)
            os.close(self.slave)
            return
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)


@contextlib.contextmanager
def at_terminal(argv: list[str] | Command, *, rows: int = 24, cols: int = 80) -> Iterator[Person]:
    """A person for the length of a test."""
    person = Person(argv, rows=rows, cols=cols)
    try:
        yield person
    finally:
        person.close()
