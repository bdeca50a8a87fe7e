"""Real holders with real programs for tests, spoken to through a plain blocking connection."""

import contextlib
import fcntl
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from agent_relay.domain.screen import Screen, parse_screen
from agent_relay.system.processes import end_session, is_alive
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.holder.wire import FrameReader, HolderSpec, render_frame
from agent_relay.terminal.holder_client import StartedHolder, start_holder
from tests.support.measured import find_holder_python, is_measured

LIMIT_S = 120.0
Found = TypeVar("Found")


def wait_until(look: Callable[[], Found], what: str, limit_s: float = LIMIT_S) -> Found:
    """What `look` found once it found something; fails with `what` was waited for."""
    deadline = time.monotonic() + limit_s
    while not (found := look()):
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {limit_s:g} s for {what}")
        time.sleep(0.01)
    return found


class Wire:
    """One connection to a holder; events met while an answer is awaited are kept in `events`."""

    def __init__(self, folder: str) -> None:
        directory = os.open(folder, os.O_PATH)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT_S)
        try:
            self.sock.connect(f"/proc/self/fd/{directory}/sock")
        except OSError:
            self.sock.close()
            raise
        finally:
            os.close(directory)
        self.frames = FrameReader()
        self.events: list[dict[str, object]] = []
        self.answers: list[dict[str, object]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def _receive(self) -> None:
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError("the holder closed the connection")
        for message in self.frames.feed(data):
            (self.events if "event" in message else self.answers).append(message)

    def send(self, op: str, fds: tuple[int, ...] = (), **fields: object) -> None:
        """Ask without waiting for the answer."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))] if fds else []
        frame = render_frame({"op": op, **fields})
        if rest := frame[self.sock.sendmsg([frame], rights) :]:
            # Not with nothing left: a holder that was told to leave may be gone by now.
            self.sock.sendall(rest)

    def ask(self, op: str, fds: tuple[int, ...] = (), **fields: object) -> dict[str, object]:
        """The answer to one request."""
        self.send(op, fds, **fields)
        while not self.answers:
            self._receive()
        return self.answers.pop(0)

    def event(self, kind: str) -> dict[str, object]:
        """The next event of that kind; others before it are dropped."""
        while True:
            while self.events:
                event = self.events.pop(0)
                if event["event"] == kind:
                    return event
            self._receive()

    def wait_for_exit(self) -> dict[str, object]:
        """The exit event, even if it was told before this connection came."""
        told = self.ask("watch")["exit"]
        return told if isinstance(told, dict) else self.event("exit")

    def type(self, data: bytes) -> None:
        """Send input, which must be accepted."""
        answer = self.ask("input", data=data.decode("latin-1"))
        assert answer["ok"], answer

    def screen(self) -> Screen:
        """The screen now."""
        return parse_screen(self.ask("screen", peek=True)["screen"])

    def wait_for_text(self, text: str) -> Screen:
        """The screen once it shows `text`."""
        return wait_until(
            lambda: screen if text in (screen := self.screen()).text() else None, f"{text!r} on the screen"
        )

    def output(self) -> bytes:
        """Everything still kept of what the child wrote."""
        parts, offset = [], 0
        while True:
            answer = self.ask("tail", offset=offset)
            data = str(answer["data"]).encode("latin-1")
            if not data:
                return b"".join(parts)
            parts.append(data)
            first = answer["offset"]
            assert isinstance(first, int)
            offset = first + len(data)


@dataclass(frozen=True, slots=True)
class Held:
    """A running holder and its folder."""

    folder: str
    started: StartedHolder

    @property
    def socket(self) -> str:
        """Where it listens."""
        return f"{self.folder}/sock"

    def is_locked(self) -> bool:
        """Whether somebody holds the leg's lock."""
        try:
            fd = os.open(f"{self.folder}/lock", os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False


@contextlib.contextmanager
def hold(folder: str, argv: list[str], *, holder: str = "", **more: object) -> Iterator[Held]:
    """A leg running `argv`; whatever still lives at the end is killed. `more` are fields of HolderSpec.

    `holder` starts another holder than ours: it is run as Python is to start one.
    """
    os.makedirs(folder, mode=0o700, exist_ok=True)
    lock_fd = os.open(f"{folder}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock_fd, fcntl.LOCK_EX)
    fields: dict[str, object] = {
        "env": {**os.environ, "TERM": "xterm-256color"},
        "cwd": folder,
        "rows": 24,
        "cols": 80,
        "library": find_library() or "",
        **more,
    }
    try:
        spec = HolderSpec(argv=argv, leg_folder=folder, lock_fd=lock_fd, **fields)  # type: ignore[arg-type]
        started = start_holder(spec, python=holder or find_holder_python(folder))
    finally:
        os.close(lock_fd)
    held = Held(folder, started)
    try:
        yield held
    finally:
        end_session(started.child_pid, started.child_born, polite_s=0.0)
        if is_measured():
            _let_leave(held)
        if held.is_locked():
            with contextlib.suppress(ProcessLookupError):
                os.kill(started.holder_pid, signal.SIGKILL)
        wait_until(lambda: not held.is_locked(), "the holder's end")
        assert not is_alive(started.child_pid, started.child_born)


def _let_leave(held: Held) -> None:
    """The holder has left in order, which is when coverage writes what it saw, or would not."""
    with contextlib.suppress(OSError, EOFError, AssertionError):
        with Wire(held.folder) as wire:
            wire.ask("leave")
        wait_until(lambda: not held.is_locked(), "the holder to leave", limit_s=20)


def python(code: str) -> list[str]:
    """The argument vector of a small Python program that starts quickly."""
    return [sys.executable, "-I", "-S", "-c", code]


RAW = """
import os, sys, termios, tty
tty.setraw(0)
def say(text): os.write(1, text.encode())
"""


def raw_python(code: str) -> list[str]:
    """The same, its terminal raw before the first line, with `say(text)`."""
    return python(RAW + code)
