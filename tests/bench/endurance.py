"""What must hold when terminals stop reading, and when nothing happens at all."""

import os
import signal
import time
from dataclasses import dataclass

from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from tests.bench.measure import MEGABYTE, Effort, write_recorded
from tests.bench.programs import END, READY
from tests.bench.session import COLS, ROWS, Session
from tests.bench.wrappers import World, open_world
from tests.support.peak import read_peak_mb, read_ticks

_TICK = os.sysconf("SC_CLK_TCK")
_QUIET_S = 0.5
_FIRST_S = 1.0
_RATE_S = 2.0


@dataclass(frozen=True)
class Stall:
    """An agent floods with one terminal reading, one that never reads and one whose client is stopped.

    `beside_mb_s` is what the reading one gets, once a round, `alone_mb_s` the same with only that terminal;
    both from the second second on. Memory is the holder's peak.
    """

    alone_mb_s: list[float]
    beside_mb_s: list[float]
    same_screens: bool
    peak_mb: float


@dataclass(frozen=True)
class Idle:
    """Per leg: memory of its holder alone (PSS); for all legs and their watcher: processor time."""

    legs: int
    pss_mb: float
    cpu_percent: float


def measure_stall(effort: Effort) -> Stall:
    """Rates, screens in the end, and memory, with two terminals that do not read."""
    rates: dict[int, list[float]] = {0: [], 2: []}
    with open_world() as world:
        for _ in range(max(2, effort.rounds // 3)):
            for others in effort.order.sample((0, 2), 2):
                rates[others].append(_measure_rate(world, others))
        same, peak_mb = _compare_screens(world, effort)
    return Stall(rates[0], rates[2], same, peak_mb)


def _measure_rate(world: World, others: int) -> float:
    """Megabytes a second on the terminal that reads, of a flood without an end."""
    reading = world.start("relay", "flood", write_recorded(world), "0")
    lazy = _attach_lazy(world, reading, others)
    reading.type(b"g")
    _count_for(reading, _FIRST_S)
    start = time.perf_counter()
    count = _count_for(reading, _RATE_S)
    rate = count / MEGABYTE / (time.perf_counter() - start)
    for session in [*lazy, reading]:
        world.end(session)
    return rate


def _attach_lazy(world: World, first: Session, count: int) -> list[Session]:
    """So many more terminals on that session, which show its screen and are not read from then on."""
    lazy = [world.attach(first) for _ in range(count)]
    for session in lazy:
        session.wait_for(READY)
    if lazy:
        os.kill(lazy[0].pid, signal.SIGSTOP)
    return lazy


def _count_for(session: Session, span_s: float) -> int:
    """How many bytes the terminal gets in that time."""
    count, end = 0, time.perf_counter() + span_s
    while (left_s := end - time.perf_counter()) > 0:
        count += len(session.read(left_s))
    return count


def _compare_screens(world: World, effort: Effort) -> tuple[bool, float]:
    """Whether terminals that did not read show the reader's screen once they do; the holder's peak memory."""
    reading = world.start("relay", "flood", write_recorded(world), str(effort.flood_bytes))
    holder = world.find_holder(reading)
    lazy = _attach_lazy(world, reading, 2)
    reading.type(b"g")
    screen = Emulator(find_library() or "", COLS, ROWS)
    tail = b""
    while END not in tail:
        data = reading.read(60)
        if not data:
            return False, 0.0
        screen.feed(data)
        tail = tail[-len(END) :] + data
    os.kill(lazy[0].pid, signal.SIGCONT)
    same = all(_read_screen(session) == screen.text() for session in lazy)
    return same, read_peak_mb(holder)


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
        before = sum(map(read_ticks, [*pids, watcher]))
        time.sleep(span_s)
        spent = sum(map(read_ticks, [*pids, watcher])) - before
        pss = [_read_field(f"/proc/{pid}/smaps_rollup", "Pss:") / 1024 for pid in pids]
        for one in started:
            os.kill(one.child_pid, signal.SIGKILL)
    return Idle(effort.legs, sum(pss) / len(pss), 100 * spent / _TICK / span_s)
