"""A user's terminal for tests: a PTY through pexpect, an emulator that shows and answers, and waits."""

import os
import re
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import pexpect
import pexpect.fdpexpect
import pyghostty

from agent_relay.terminal.holder.child import open_pty
from tests.support.preloaded import Command, Process

ROWS, COLS = 40, 120
LIMIT_S = 180  # on a machine with ten times the work it can do, agents have needed 47 s to start instead of 3
LAST_S = 10  # somebody else may keep the PTY of a program open that is gone
READ_S = 0.05  # how long one look at the PTY waits for bytes before conditions are checked again


class WaitedError(AssertionError):
    """Something a test waited for did not come in time; the message shows the screen."""


class Terminal:
    """One program in one terminal. Output is only read while something is waited for.

    A `Command` brings its environment and folder with it.
    """

    def __init__(
        self,
        argv: Sequence[str] | Command,
        *,
        env: Mapping[str, str] = MappingProxyType({}),
        cwd: str = "",
        size: tuple[int, int] = (ROWS, COLS),
    ) -> None:
        self._rows = size[0]
        self._emulator = pyghostty.Terminal(size[1], size[0])
        self._emulator.on_reply(self._answer)
        self.raw = bytearray()
        self._forked: Process | None = None
        if isinstance(argv, Command):
            master, slave = open_pty(rows=size[0], cols=size[1])
            self._forked = argv.start_at(slave)
            os.close(slave)
            # What is typed faster than it is read has to wait, not to be dropped.
            os.set_blocking(master, True)
            self._child = pexpect.fdpexpect.fdspawn(master)
        else:
            self._child = pexpect.spawn(
                argv[0], list(argv[1:]), env=dict(env), cwd=cwd, dimensions=size, echo=False
            )
        # its own answers and keys pass through `send`: pexpect would sleep 50 ms before each write
        self._child.delaybeforesend = None

    @property
    def pid(self) -> int:
        """The process id of the program (of the program that joined the namespace, then became it)."""
        return int(self._forked.pid if self._forked else self._child.pid)

    @property
    def screen(self) -> str:
        """The text grid shown now."""
        return str(self._emulator.text())

    @property
    def rows(self) -> list[str]:
        """Every row of the screen, the lowest last."""
        lines = self.screen.split("\n")[: self._rows]
        return lines + [""] * (self._rows - len(lines))

    def modes_left_on(self) -> list[int]:
        """The modes a program must not leave on that are on: screen, mouse, paste, focus, reports, sync."""
        modes = (1000, 1002, 1003, 1004, 1006, 1049, 2004, 2026, 2031)
        hidden = [] if self._emulator.mode(25) else [25]
        return [mode for mode in modes if self._emulator.mode(mode)] + hidden

    def show(self, text: str) -> None:
        """Have the terminal take `text` as if the program had written it."""
        self._emulator.feed(text.encode())

    def _answer(self, reply: bytes) -> None:
        self.send(reply)

    def pump(self, wait_s: float = READ_S) -> bool:
        """Read what is there, waiting up to `wait_s`; whether the PTY is still open."""
        try:
            data = self._child.read_nonblocking(size=65536, timeout=wait_s)
        except pexpect.TIMEOUT:
            return True
        except pexpect.EOF:
            return False
        self.raw += data
        self._emulator.feed(data)
        return True

    def send(self, data: bytes | str) -> None:
        """Type `data` at once; nothing happens once the program is gone."""
        raw = data.encode() if isinstance(data, str) else data
        while raw:
            try:
                written = os.write(self._child.child_fd, raw)
            except OSError:
                return
            raw = raw[written:]

    def paste(self, text: str) -> None:
        """Paste `text` in brackets, in pieces the PTY's buffer takes, reading the echo in between."""
        data = b"\x1b[200~" + text.encode() + b"\x1b[201~"
        for at in range(0, len(data), 1024):
            self.send(data[at : at + 1024])
            self.pump(0)

    def wait_until(self, holds: Callable[[], bool], what: str, *, limit_s: float = LIMIT_S) -> None:
        """Return as soon as `holds()`; raise `WaitedError` with the screen after `limit_s`."""
        end = time.monotonic() + limit_s
        while not holds():
            if time.monotonic() > end:
                raise WaitedError(f"waited {limit_s} s for {what}; the screen:\n{self.screen}")
            if not self.pump():
                if holds():
                    return
                raise WaitedError(f"the program ended before {what}; the screen:\n{self.screen}")

    def wait_for(self, pattern: str, *, limit_s: float = LIMIT_S) -> None:
        """Return as soon as the screen matches `pattern`."""
        found = re.compile(pattern)
        self.wait_until(lambda: found.search(self.screen) is not None, f"/{pattern}/", limit_s=limit_s)

    def press_until(self, key: str, pattern: str, *, again_s: float = 5, times: int = 20) -> None:
        """Press `key` until the screen matches `pattern`: right after the resting screen came none counts."""
        for left in reversed(range(times)):
            self.send(key)
            try:
                return self.wait_for(pattern, limit_s=again_s)
            except WaitedError:
                if not left:
                    raise
        raise AssertionError("unreachable")

    def wait_painted(self, pattern: str) -> None:
        """Return as soon as something that matches `pattern` was painted, wherever: it may be gone again."""
        found = re.compile(pattern.encode())
        self.wait_until(lambda: found.search(self.raw) is not None, f"/{pattern}/ to be painted")

    def wait_quiet(self, quiet_s: float = 0.7, *, limit_s: float = 20) -> None:
        """Return once nothing was painted for `quiet_s`."""
        end, last, seen = time.monotonic() + limit_s, time.monotonic(), len(self.raw)
        while time.monotonic() - last < quiet_s and time.monotonic() < end and self.pump():
            if len(self.raw) != seen:
                seen, last = len(self.raw), time.monotonic()

    def wait_typed(self, text: str) -> None:
        """Return once `text` was sent and stands on the screen, or what an agent shows for a long paste.

        A return that an agent reads together with the text is a line feed to it.
        """
        tail = "".join(text.split())[-12:]
        self.wait_until(
            lambda: "Pasted" in self.screen or tail in "".join(self.screen.split()),
            f"{text[-60:]!r} to stand there",
        )
        self.wait_quiet(0.3)

    def wait_exit(self, limit_s: float = LIMIT_S) -> int:
        """The exit status as a shell reports it; raise `WaitedError` after `limit_s`."""
        end = time.monotonic() + limit_s
        is_open = True
        while self.is_alive():
            if time.monotonic() > end:
                raise WaitedError(f"waited {limit_s} s for the program to end; the screen:\n{self.screen}")
            if is_open:
                is_open = self.pump()
            else:
                time.sleep(READ_S)
        last = min(end, time.monotonic() + LAST_S)
        while is_open and time.monotonic() < last:
            is_open = self.pump()
        if self._forked:
            return self._forked.wait() if self._forked.wait() >= 0 else 128 - self._forked.wait()
        if self._child.signalstatus is not None:
            return 128 + int(self._child.signalstatus)
        return int(self._child.exitstatus)

    def is_alive(self) -> bool:
        """Whether the program has not ended yet."""
        return self._forked.poll() is None if self._forked else bool(self._child.isalive())

    def kill(self) -> None:
        """Kill the program's whole group at once, then read what it had written."""
        os.killpg(self.pid, signal.SIGKILL)
        self.wait_exit()

    def close(self) -> None:
        """End whatever is left of the program's group and free the terminal."""
        if self.is_alive():
            os.killpg(self.pid, signal.SIGKILL)
            (self._forked or self._child).wait()
        if self._forked:
            self._child.close()
        else:
            self._child.close(force=True)
        self._emulator.close()
