"""What watching costs while an agent floods: bounded, measured beside peers in one run."""

import contextlib
import fcntl
import os
import pty
import shlex
import shutil
import statistics
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from agent_relay.domain.state import State
from tests.support.peak import read_ticks
from tests.support.relay_world import CHECKOUT, RelayWorld, relay_world

pytestmark = pytest.mark.size("bench")

SECONDS = 6.0
ROUNDS = 3
FLOOD = os.path.join(CHECKOUT, "tests", "support", "flooder")


def read_cpu_s(pid: int) -> float:
    """Processor seconds of the process so far, its threads included."""
    return read_ticks(pid) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def terminal(argv: list[str], world: RelayWorld) -> Iterator[tuple[int, Callable[[], int]]]:
    """A program on a terminal of 24 rows that is read as fast as it comes: its pid, and its bytes so far."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
            os.chdir(world.project)
            os.execvpe(argv[0], argv, world.environ | {"PYTHONPATH": CHECKOUT})  # noqa: S606 - a terminal of its own, not a shell
        finally:
            os._exit(127)
    count = [0]

    def drain() -> None:
        with contextlib.suppress(OSError):
            while part := os.read(fd, 1 << 16):
                count[0] += len(part)

    reader = threading.Thread(target=drain, daemon=True)
    reader.start()
    try:
        yield pid, lambda: count[0]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, 9)
        os.waitpid(pid, 0)
        reader.join(5)
        os.close(fd)


def measure(pids: list[int], count: Callable[[], int]) -> tuple[float, float]:
    """Per cent of a core the processes take together, and the bytes a second they write, after settling."""
    deadline = time.monotonic() + 30
    while not count() and time.monotonic() < deadline:
        threading.Event().wait(0.05)
    threading.Event().wait(2.0)
    before, bytes_before, began = sum(map(read_cpu_s, pids)), count(), time.monotonic()
    threading.Event().wait(SECONDS)
    took_s = time.monotonic() - began
    return 100 * (sum(map(read_cpu_s, pids)) - before) / took_s, (count() - bytes_before) / took_s


def measure_watch(world: RelayWorld) -> tuple[float, float]:
    """`agent-relay watch` on a terminal of its own."""
    with terminal([sys.executable, "-m", "agent_relay", "watch"], world) as (pid, count):
        return measure([pid], count)


def measure_htop(world: RelayWorld) -> tuple[float, float]:
    """A view of this machine's processes, in C, drawn about as often."""
    with terminal(["htop", "-d", "3"], world) as (pid, count):
        return measure([pid], count)


def measure_tmux(world: RelayWorld) -> tuple[float, float]:
    """The same flood on a terminal through tmux: its server and its client."""
    socket = os.path.join(world.folder, "tmux")
    program = shlex.join([sys.executable, os.path.join(FLOOD, "flood.py")])
    with terminal(["tmux", "-S", socket, "-f", "/dev/null", "new-session", program], world) as (pid, count):
        deadline = time.monotonic() + 10
        server = ""
        while not server and time.monotonic() < deadline:
            done = subprocess.run(
                ["tmux", "-S", socket, "display-message", "-p", "#{pid}"],
                capture_output=True,
                text=True,
                check=False,
            )
            server = done.stdout.strip()
        try:
            return measure([pid, int(server)], count)
        finally:
            subprocess.run(["tmux", "-S", socket, "kill-server"], check=False, capture_output=True)


@pytest.mark.timeout(600)
def test_watching_a_flood_costs_a_bounded_part_of_a_core() -> None:
    """The agent takes what it can get; who looks on must not. Medians of rounds, peers in turn."""
    with relay_world(order=("flooder",)) as world:
        shutil.copytree(FLOOD, f"{world.folders.config}/adapters/flooder")
        world.start_daemon()
        session = str(world.open("flooder")["session"])
        world.wait_for(session, lambda found: found.state is State.BUSY, "the flood is seen")
        daemon = world.daemons[-1].pid
        rows: dict[str, list[tuple[float, float]]] = {}
        for _ in range(ROUNDS):
            rows.setdefault("daemon, nobody watching", []).append(measure([daemon], lambda: 1))
            with terminal([sys.executable, "-m", "agent_relay", "watch"], world) as (_, count):
                rows.setdefault("daemon, watched", []).append(measure([daemon], count))
            for name, look in (("watch", measure_watch), ("htop", measure_htop), ("tmux", measure_tmux)):
                rows.setdefault(name, []).append(look(world))
    cpu = {name: statistics.median(row[0] for row in found) for name, found in rows.items()}
    written = {name: statistics.median(row[1] for row in found) for name, found in rows.items()}
    for name, part in cpu.items():
        sys.stdout.write(f"{name:24} {part:6.1f} % of a core, {written[name]:10,.0f} bytes a second\n")
    assert cpu["watch"] <= cpu["tmux"] * 0.5
    assert written["watch"] <= written["tmux"]
