"""What must hold when terminals stop reading, and when nothing happens at all."""

import os
import signal
import time
from dataclasses import dataclass

from agent_relay.logic.emulator import Emulator
from agent_relay.system.emulator_library import find_library
from tests.bench.measure import Effort, write_recorded
from tests.bench.programs import END
from tests.bench.session import COLS, ROWS, Session
from tests.bench.wrappers import PROGRAMS, World, open_world
from tests.support.peak import read_peak_mb

_TICK = os.sysconf("SC_CLK_TCK")
_QUIET_S = 0.5


@dataclass(frozen=True)
class Stall:
    """An agent floods with one terminal reading, one stalled and one whose client is stopped.

    `alone_s` is the same flood with only the reading terminal. Memory is the holder's peak.
    """

    alone_s: float
    beside_s: float
    same_screens: bool
    peak_mb: float


@dataclass(frozen=True)
class Idle:
    """Per leg: memory of its holder alone (PSS); for all legs and their watcher: processor time."""

    legs: int
    pss_mb: float
    cpu_percent: float


def measure_stall(effort: Effort) -> Stall:
    """Times, screens in the end, and memory, with two terminals that do not read."""
    with open_world() as world:
        alone_s, _, _ = _flood(world, effort, 0)
        beside_s, same, peak_mb = _flood(world, effort, 2)
    return Stall(alone_s, beside_s, same, peak_mb)


def _flood(world: World, effort: Effort, others: int) -> tuple[float, bool, float]:
    folder, pid_path = (
        os.path.join(world.folder, f"stall{others}"),
        os.path.join(world.folder, f"pid-s{others}"),
    )
    argv = [
        "python3",
        "-I",
        "-S",
        PROGRAMS,
        "flood",
        pid_path,
        write_recorded(world),
        str(effort.flood_bytes),
    ]
    holder = world.hold(argv, folder)
    lazy = [world.attach(folder, pid_path) for _ in range(others)]
    for session in lazy:
        session.read(5)
    reading = world.attach(folder, pid_path)
    reading.wait_for(b"BENCH-READY")
    if lazy:
        os.kill(lazy[0].pid, signal.SIGSTOP)
    start = time.perf_counter()
    reading.type(b"g")
    screen = Emulator(find_library() or "", COLS, ROWS)
    tail = b""
    while END not in tail:
        data = reading.read(60)
        if not data:
            return float("inf"), False, 0.0
        screen.feed(data)
        tail = tail[-len(END) :] + data
    spent_s = time.perf_counter() - start
    if lazy:
        os.kill(lazy[0].pid, signal.SIGCONT)
    same = all(_read_screen(session) == screen.text() for session in lazy)
    return spent_s, same, read_peak_mb(holder.holder_pid)


def _read_screen(session: Session) -> list[str]:
    """What a person sees on a terminal that reads again, once nothing more comes."""
    screen = Emulator(find_library() or "", COLS, ROWS)
    while data := session.read(_QUIET_S):
        screen.feed(data)
    return screen.text()


def _read_field(path: str, name: str) -> int:
    with open(path, encoding="ascii", errors="replace") as file:
        return next((int(line.split()[1]) for line in file if line.startswith(name)), 0)


def measure_idle(effort: Effort, *, span_s: float = 5.0) -> Idle:
    """Memory and processor time of many legs that wait, each watched, none attached."""
    with open_world() as world:
        folders = [os.path.join(world.folder, f"idle{number}") for number in range(effort.legs)]
        started = [world.hold(["sleep", "600"], folder, is_watched=False) for folder in folders]
        watcher = world.watch(folders)
        pids = [one.holder_pid for one in started]
        time.sleep(1.0)
        before = sum(map(_read_ticks, [*pids, watcher]))
        time.sleep(span_s)
        spent = sum(map(_read_ticks, [*pids, watcher])) - before
        pss = [_read_field(f"/proc/{pid}/smaps_rollup", "Pss:") / 1024 for pid in pids]
        for one in started:
            os.kill(one.child_pid, signal.SIGKILL)
    return Idle(effort.legs, sum(pss) / len(pss), 100 * spent / _TICK / span_s)


def _read_ticks(pid: int) -> int:
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return int(fields[11]) + int(fields[12])
