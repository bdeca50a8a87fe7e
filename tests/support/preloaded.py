"""Programs of the product, forked from a process that has loaded all of it, which takes milliseconds.

What is forked is a process like any other: its own environment, streams, folder, command line in `/proc`, and
end. Tests that are about starting a program start it by `subprocess` instead, and so does `make coverage`.
"""

import array
import atexit
import contextlib
import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tests.house.tree import CHECKOUT
from tests.support.measured import is_measured, measured

DAEMON: Final = os.path.join("agent_relay", "daemon", "__main__.py")
COMMAND: Final = os.path.join("agent_relay", "__main__.py")
_SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "preload_server.py")
START_LIMIT_S = 120.0
_ROOM = "x" * 8192
"""Room for the command line, and again for the environment, that a forked process shows in `/proc`."""


class Forked:
    """A process that was forked for a test; what `subprocess.Popen` says of a process, in its words."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._status = status

    def poll(self) -> int | None:
        """The exit status, negative for a signal; `None` while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(timeout=0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit status; raise `TimeoutExpired` if it still runs after `timeout` seconds."""
        if self.returncode is None:
            if not select.select([self._status], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
            # Nothing comes from a server that was killed: what it forked is known to nobody then.
            self.returncode = int(os.read(self._status, 64) or -signal.SIGKILL)
            os.close(self._status)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known to have ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)


class _Server:
    """The process that has loaded the product; one for each process that tests."""

    def __init__(self) -> None:
        self._owner = os.getpid()
        self._folder = tempfile.TemporaryDirectory(prefix="ar-preloaded-", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [sys.executable, "-I", _SERVER, CHECKOUT, self._folder.name, _ROOM],
            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "ROOM": _ROOM},
            cwd="/",
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        atexit.register(self.end)
        deadline = time.monotonic() + START_LIMIT_S
        while not self._connects():
            assert self._process.poll() is None, "the product cannot be loaded"
            assert time.monotonic() < deadline, f"the product was not loaded in {START_LIMIT_S:g} s"
            time.sleep(0.01)

    def _connects(self) -> bool:
        try:
            self._socket.connect(f"{self._folder.name}/sock")
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def fork(self, order: Mapping[str, object], streams: Sequence[int]) -> Forked:
        reads, writes = os.pipe()
        try:
            rights = array.array("i", [*streams, writes])
            self._socket.sendmsg(
                [json.dumps(order).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)]
            )
        finally:
            os.close(writes)
        answer = self._socket.recv(64)
        assert answer, f"the process that has loaded the product ended with {self._process.wait()}"
        return Forked(int(answer), reads)

    def end(self) -> None:
        if os.getpid() == self._owner:
            self._socket.close()
            self._process.wait()
            self._folder.cleanup()


@functools.cache
def _get_server() -> _Server:
    return _Server()


def start(
    program: str,
    words: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str,
    streams: Sequence[int],
    leads: bool = False,
    namespaces: Sequence[str] = (),
) -> Forked:
    """Fork `program`, a path of the product, with these three streams; with `leads`, as a session's leader.

    A session's leader whose input is a terminal has it as its own. `namespaces` are paths of those to be
    entered, a user's first.
    """
    order = {"program": program, "words": [*words], "env": {**env}, "cwd": cwd, "leads": leads}
    order["namespaces"] = [*namespaces]
    return _get_server().fork(order, streams)


Process = Forked | subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Command:
    """An `agent-relay` command to be run: its words, its whole environment, folder and namespaces."""

    words: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    namespaces: Sequence[str] = ()

    @property
    def argv(self) -> list[str]:
        """The command line that starts it."""
        return [sys.executable, "-m", "agent_relay", *self.words]

    def start_at(self, terminal: int) -> "Process":
        """Start it as the leader of a session whose terminal is the slave side `terminal`."""
        if not is_measured():
            streams = [terminal] * 3
            return self.start(streams)
        return subprocess.Popen(
            ["setsid", "--ctty", *self.argv],
            env={**self.env, **measured()},
            cwd=self.cwd,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        )

    def start(self, streams: Sequence[int], *, leads: bool = True) -> Forked:
        """Fork it with these three streams."""
        return start(
            COMMAND,
            self.words,
            env=self.env,
            cwd=self.cwd,
            streams=streams,
            leads=leads,
            namespaces=self.namespaces,
        )


class Running:
    """A command under way without a terminal, what it says kept in files; with `leads` in its own session."""

    def __init__(self, command: Command, *, given: bytes = b"", leads: bool = False) -> None:
        self._argv = command.argv
        self._files = [tempfile.TemporaryFile() for _ in range(3)]  # noqa: SIM115  closed at its end
        self._files[0].write(given)
        self._files[0].seek(0)
        self.process = command.start([file.fileno() for file in self._files], leads=leads)

    def finish(self, timeout: float = 180) -> "subprocess.CompletedProcess[bytes]":
        """Its status and all it said, once it has ended; it is killed after `timeout` seconds."""
        try:
            status = self.process.wait(timeout)
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        said = []
        for file in self._files:
            file.seek(0)
            said.append(file.read())
            file.close()
        return subprocess.CompletedProcess(self._argv, status, said[1], said[2])


def run(
    words: Sequence[str], *, env: Mapping[str, str], cwd: str, given: bytes = b"", timeout: float = 180
) -> "subprocess.CompletedProcess[bytes]":
    """Run the `agent-relay` command to its end, with `given` as its input."""
    command = Command(words, env, cwd)
    if is_measured():
        return subprocess.run(
            command.argv,
            env={**env, **measured()},
            cwd=cwd,
            input=given,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    return Running(command, given=given).finish(timeout)
