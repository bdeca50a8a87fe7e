"""From a key to its picture at a prompt: the relay shell, and a plain prompt of the same library."""

import contextlib
import os
import random
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

import pexpect

from tests.bench.session import LateError
from tests.support.shells import shell_world

KEYS = 600
A_LINE = 12
FIRST_SIGN = 0x4E00
"""Every key is a sign that was not on the screen before: where it is read, it has been painted."""
FLOOD_PIECES = 6_000
PIECE = (
    "It **subtracts** in `calc.py`, which the test does not see:\n\n"
    "- one thing that is wrong\n- another thing\n\n"
    "```python\ndef add(a, b):\n    return a + b\n```\n\n"
    "plain words that go on for a while, line by line\n" * 12
)
PEER = """
import sys, threading, time
from prompt_toolkit import PromptSession
from prompt_toolkit.patch_stdout import patch_stdout

def flood():
    piece = sys.argv[1]
    while True:
        print(piece)
        time.sleep(len(piece) / 1e6)

session = PromptSession("> ")
with patch_stdout(raw=True):
    if len(sys.argv) > 1:
        threading.Thread(target=flood, daemon=True).start()
    session.prompt()
"""


class Typist:
    """A terminal that reads everything at once, and somebody who types at it."""

    def __init__(self, words: Sequence[str], *, env: Mapping[str, str], cwd: str) -> None:
        self._child = pexpect.spawn(words[0], list(words[1:]), env=dict(env), cwd=cwd, dimensions=(40, 120))
        self._child.delaybeforesend = None
        self._poll = select.poll()
        self._poll.register(self._child.child_fd, select.POLLIN)
        self._sign = FIRST_SIGN
        self._dice = random.Random(5)  # noqa: S311 - pauses between keys, not secrets
        self.received = 0
        self.pid = self._child.pid

    def send(self, text: str) -> None:
        """The keys are on their way."""
        os.write(self._child.child_fd, text.encode())

    def read_until(self, text: str, limit_s: float = 30.0) -> None:
        """All is read up to the moment `text` was painted."""
        wanted, tail, end = text.encode(), b"", time.monotonic() + limit_s
        while wanted not in tail:
            if time.monotonic() > end:
                raise LateError(f"{text!r} was not painted in {limit_s} s")
            tail = tail[-len(wanted) :] + self._read(100)

    def drain(self, span_s: float) -> int:
        """How many bytes came within that time."""
        before, end = self.received, time.monotonic() + span_s
        while (left := end - time.monotonic()) > 0:
            self._read(left * 1000)
        return self.received - before

    def press(self, keys: int) -> list[float]:
        """Milliseconds from each key to its picture."""
        times = []
        for number in range(keys):
            if number % A_LINE == 0:
                self.send("\x15")
            self.drain(self._dice.uniform(0.005, 0.035))
            sign = chr(self._sign)
            self._sign += 1
            begin = time.perf_counter()
            self.send(sign)
            self.read_until(sign)
            times.append((time.perf_counter() - begin) * 1e3)
        return times

    def close(self) -> None:
        """The program is gone."""
        self._child.close(force=True)

    def _read(self, limit_ms: float) -> bytes:
        if not self._poll.poll(limit_ms):
            return b""
        data = os.read(self._child.child_fd, 1 << 16)
        self.received += len(data)
        return data


@contextlib.contextmanager
def open_shell() -> Iterator[Typist]:
    """The relay shell; a message with "flood" makes its agent say a megabyte a second and more."""
    flood = [{"when": "flood", "do": [{"say": PIECE}] * FLOOD_PIECES}]
    with shell_world(demo=flood) as world:
        words = [sys.executable, "-m", "agent_relay"]
        typist = Typist(words, env=world.environ, cwd=world.project)
        try:
            typist.read_until("/help lists")
            typist.drain(1.0)
            yield typist
        finally:
            typist.close()


@contextlib.contextmanager
def open_peer(*, is_flooded: bool) -> Iterator[Typist]:
    """A prompt of the library's, above which a thread prints the same words as they are."""
    environ = {
        "PATH": os.environ["PATH"],
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    words = [sys.executable, "-c", PEER, *([PIECE] if is_flooded else [])]
    typist = Typist(words, env=environ, cwd="/")
    try:
        typist.read_until("subtracts" if is_flooded else ">")
        typist.drain(1.0)
        yield typist
    finally:
        typist.close()


def prefer(pid: int) -> None:
    """The process goes before the machine's other work, where we may say so: neighbours are not measured."""
    with contextlib.suppress(PermissionError):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setscheduler(int(task), os.SCHED_RR, os.sched_param(5))


@contextlib.contextmanager
def preferred() -> Iterator[None]:
    """Within, so does this process: it is the terminal."""
    prefer(os.getpid())
    try:
        yield
    finally:
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def pick(times: Sequence[float], percent: float) -> float:
    """That percentile."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]
