"""What is measured, each for all wrappers in turn: latencies, floods, pastes."""

import glob
import gzip
import os
import random
import select
import signal
import statistics
import time
import zlib
from dataclasses import dataclass, field

from tests.bench.programs import END
from tests.bench.session import LateError, Session
from tests.bench.wrappers import NAMES, World, open_world

KEYS = b"vwyz"  # letters that end no escape sequence a wrapper sends
GAP_S = 0.0015
GOLDEN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "golden", "recordings")
MEGABYTE = 1_000_000
_HANGS_S = 20.0
_SETTLED_S = 3.0
"""How long after a start it is measured: programs for a next handoff are started in the first seconds."""


@dataclass
class Effort:
    """How long everything is done; the quick one is for a look, not for a verdict."""

    rounds: int = 21
    keys: int = 150
    flood_bytes: int = 30 * MEGABYTE
    paste_bytes: int = 20 * MEGABYTE
    slow_paste_bytes: int = 1 * MEGABYTE
    legs: int = 100
    seed: int = 7
    order: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.order = random.Random(self.seed)  # noqa: S311 - an order of measurements, not a secret

    def shuffled(self, names: tuple[str, ...]) -> list[str]:
        """The names in another order each time: no wrapper always meets the machine in the same mood."""
        return self.order.sample(names, len(names))


QUICK = Effort(
    rounds=2,
    keys=60,
    flood_bytes=10 * MEGABYTE,
    paste_bytes=4 * MEGABYTE,
    slow_paste_bytes=MEGABYTE // 4,
    legs=10,
)
Samples = dict[str, list[float]]


def measure_echo(effort: Effort, *, is_flooded: bool) -> Samples:
    """Microseconds from a key to its picture on the terminal, for each key.

    Flooded: another session of the same wrapper writes recorded bytes as fast as it can meanwhile, and
    is read by a terminal of its own. Only one neighbour runs at a time.
    """
    samples: Samples = {name: [] for name in NAMES}
    with open_world() as world:
        sessions = {name: world.start(name, "echo") for name in NAMES}
        neighbours = {name: _start_neighbour(world, name) for name in NAMES} if is_flooded else {}
        time.sleep(_SETTLED_S)
        for name in NAMES:
            _press(sessions[name], effort.keys // 4)
        burst = effort.keys // (2 if is_flooded else 10)
        for _ in range(effort.rounds * effort.keys // burst):
            for name in effort.shuffled(NAMES):
                if is_flooded:
                    os.kill(neighbours[name], signal.SIGCONT)
                    _press(sessions[name], burst // 5)
                samples[name] += _press(sessions[name], burst)
                if is_flooded:
                    os.kill(neighbours[name], signal.SIGSTOP)
    return samples


def _start_neighbour(world: World, name: str) -> int:
    session = world.start(name, "flood", write_recorded(world), "0")
    session.type(b"g")
    pid = session.program_pid
    session.drain()
    os.kill(pid, signal.SIGSTOP)
    return pid


def _press(session: Session, keys: int) -> list[float]:
    times = []
    poll = select.poll()
    poll.register(session.fd, select.POLLIN)
    for number in range(keys):
        key = KEYS[number % len(KEYS)]
        start = time.perf_counter_ns()
        os.write(session.fd, bytes((key,)))
        while True:
            if not poll.poll(10_000):
                raise LateError(f"key {number} had no echo on {os.path.basename(session.program)}")
            if key in os.read(session.fd, 1 << 16):
                break
        times.append((time.perf_counter_ns() - start) / 1000)
        time.sleep(GAP_S)
    return times


def measure_flood(effort: Effort, *, is_truecolor: bool) -> Samples:
    """Megabytes a second from the program until the terminal shows the end, once a round."""
    samples: Samples = {name: [] for name in NAMES}
    with open_world() as world:
        path = write_truecolor(world) if is_truecolor else write_recorded(world)
        for _ in range(effort.rounds):
            for name in effort.shuffled(NAMES):
                try:
                    samples[name].append(_flood(world, name, path, effort))
                except LateError:
                    if name == "relay":
                        raise
                    # A peer that paints what differs, only, may paint the end in pieces: it has another try.
                    samples[name].append(_flood(world, name, path, effort))
    return samples


def _flood(world: World, name: str, path: str, effort: Effort) -> float:
    """Megabytes a second. Raises LateError where the end is not seen."""
    session = world.start(name, "flood", path, str(effort.flood_bytes))
    time.sleep(_SETTLED_S if name == "relay" else 0.05)
    start = time.perf_counter()
    session.type(b"g")
    session.count_until(END)
    took_s = time.perf_counter() - start
    world.end(session)
    return effort.flood_bytes / MEGABYTE / took_s


def measure_paste(effort: Effort) -> Samples:
    """Megabytes a second from the terminal to the program, every byte checked; slow wrappers get less.

    A wrapper that loses bytes or hangs has no sample from then on.
    """
    samples: Samples = {name: [] for name in NAMES}
    with open_world() as world:
        for _ in range(effort.rounds):
            for name in effort.shuffled(tuple(samples)):
                slow = name in ("dtach", "tmux", "screen")
                rate = _paste(world, name, effort.slow_paste_bytes if slow else effort.paste_bytes)
                if rate is None:
                    del samples[name]
                else:
                    samples[name].append(rate)
    return {name: samples.get(name, []) for name in NAMES}


def _paste(world: World, name: str, size: int) -> float | None:
    text = (b"the quick brown fox jumps over the lazy dog 0123456789\r" * (size // 55 + 1))[:size]
    session = world.start(name, "sink", str(size))
    mark = b"SUM%08x" % zlib.crc32(text) + END
    poll = select.poll()
    start = time.perf_counter()
    view, tail = memoryview(text), b""
    while mark not in tail and time.perf_counter() - start < _HANGS_S:
        poll.register(session.fd, select.POLLIN | (select.POLLOUT if view else 0))
        for _, ready in poll.poll(1000):
            if ready & select.POLLOUT:
                view = view[os.write(session.fd, view[: 1 << 16]) :]
            if ready & select.POLLIN:
                tail = tail[-len(mark) :] + os.read(session.fd, 1 << 16)
    spent_s = time.perf_counter() - start
    world.end(session)
    return size / MEGABYTE / spent_s if mark in tail else None


def write_recorded(world: World) -> str:
    """A file of what the real agents wrote, one recording after the other."""
    path = os.path.join(world.folder, "recorded")
    if not os.path.exists(path):
        with open(path, "wb") as file:
            for name in sorted(glob.glob(os.path.join(GOLDEN, "*", "*120x40.raw.gz"))):
                with gzip.open(name) as recording:
                    file.write(recording.read())
    return path


def write_truecolor(world: World) -> str:
    """A file of screens on which every cell has a colour of its own."""
    path = os.path.join(world.folder, "truecolor")
    dice = random.Random(11)  # noqa: S311 - colours, not secrets
    with open(path, "wb") as file:
        for _ in range(40):
            file.write(b"\x1b[H")
            for row in range(40):
                cells = (
                    b"\x1b[38;2;%d;%d;%dm%c"
                    % (dice.randrange(256), row, dice.randrange(256), 33 + dice.randrange(90))
                    for _ in range(120)
                )
                file.write(b"\x1b[%d;1H" % (row + 1) + b"".join(cells))
    return path


def compare(samples: Samples, ours: str, theirs: str, rounds: int) -> float | None:
    """The middle one of the rounds' ratios: what a round's neighbours met, both of them met.

    Each round's value is the median of its samples. None where either has a round without any.
    """
    pairs = []
    for number in range(rounds):
        mine, peers = (_slice(samples[name], number, rounds) for name in (ours, theirs))
        if not mine or not peers:
            return None
        pairs.append(statistics.median(mine) / statistics.median(peers))
    return statistics.median(pairs)


def _slice(values: list[float], number: int, rounds: int) -> list[float]:
    size = len(values) // rounds
    return values[number * size : (number + 1) * size]
