"""Fuzzes what a holder and the daemon meet: `python -m tests.fuzz.holder --minutes 60`.

Inputs are the same for the same seed. One that breaks something is printed, made small and kept in
`tests/fuzz/corpus/<target>`, where `make test` runs it for ever. An input that ends or hangs the process is
found too: each target runs in a process of its own, which says what it is about to run.
"""

import argparse
import contextlib
import hashlib
import mmap
import os
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from tests.fuzz.asked import Asked
from tests.fuzz.inputs import Step, Target, make_rng, parse, render
from tests.fuzz.requested import Requested
from tests.fuzz.shown import Shown
from tests.fuzz.shrink import shrink
from tests.fuzz.typed import Typed

CORPUS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "corpus")
TARGETS: dict[str, Callable[[], Target]] = {
    "typed": Typed,
    "shown": Shown,
    "asked": Asked,
    "requested": Requested,
}
HANG_S = 30
"""The processor time an input may take, so that a busy machine is no finding."""
_WAIT_TIMES = 10
_MOST_FINDINGS = 20
_FOUND = 1
_AT = struct.Struct("q")


class HangError(Exception):
    """An input took too long."""


def _hang(_number: int, _frame: object) -> None:
    raise HangError


def run_one(target: Target, steps: list[Step], *, limit_s: int = HANG_S) -> BaseException | None:
    """What the input broke, `None` for nothing. It may compute for `limit_s`, and take ten times that."""
    before = {number: signal.signal(number, _hang) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, limit_s)
    outer = signal.setitimer(signal.ITIMER_REAL, limit_s * _WAIT_TIMES)
    try:
        target.run(steps)
    except (Exception, HangError) as error:  # noqa: BLE001 - the root of one input: whatever it is is the finding
        return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.setitimer(signal.ITIMER_REAL, *outer)
    return None


def list_corpus(name: str) -> Iterator[tuple[str, list[Step]]]:
    """The inputs that broke a target once, by their files."""
    folder = os.path.join(CORPUS, name)
    for file in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        with open(os.path.join(folder, file), encoding="utf-8") as stream:
            yield file, parse(stream.read())


def keep(name: str, steps: list[Step]) -> str:
    """The path of the input, which is in the corpus now."""
    text = render(steps)
    folder = os.path.join(CORPUS, name)
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, f"{hashlib.sha256(text.encode()).hexdigest()[:12]}.json")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)
    return path


def fuzz(
    build: Callable[[], Target],
    *,
    seed: int,
    until: Callable[[int], bool],
    at: Callable[[int], None],
    first: int,
) -> tuple[int, list[tuple[int, list[Step], BaseException]]]:
    """How many inputs were run from number `first` on, until `until` says so, and what they broke."""
    target, number = build(), first
    findings: list[tuple[int, list[Step], BaseException]] = []
    try:
        while not until(number - first) and len(findings) < _MOST_FINDINGS:
            at(number)
            steps = target.make(make_rng(target.name, seed, number))
            error = run_one(target, steps)
            if error is not None:
                findings.append((number, steps, error))
            number += 1
    finally:
        target.close()
    return number - first, findings


def _report(name: str, seed: int, number: int, steps: list[Step], error: BaseException) -> None:
    """The finding is printed, and kept as small as it could be made."""
    sys.stdout.write(f"{name}: input {number} of seed {seed} broke something\n")
    sys.stdout.write("".join(traceback.format_exception(error)[-6:]))
    target = TARGETS[name]()
    try:
        small = shrink(steps, lambda tried: type(run_one(target, tried, limit_s=5)) is type(error))
    finally:
        with contextlib.suppress(OSError):
            target.close()
    sys.stdout.write(f"kept: {keep(name, small)}\n{render(small)[:2000]}\n")


def _work(name: str, seed: int, minutes: float, shared: mmap.mmap) -> int:
    deadline = time.monotonic() + minutes * 60
    (first,) = _AT.unpack(shared[:8])
    count, findings = fuzz(
        TARGETS[name],
        seed=seed,
        until=lambda _: time.monotonic() > deadline,
        at=lambda number: shared.__setitem__(slice(0, 8), _AT.pack(number)),
        first=first,
    )
    for finding in findings:
        _report(name, seed, *finding)
    sys.stdout.write(
        f"{name}: {count} inputs in {minutes:g} minutes, seed {seed}, {len(findings)} findings\n"
    )
    sys.stdout.flush()
    return _FOUND if findings else 0


def _ends(name: str, steps: list[Step]) -> bool:
    """Whether the input ends the process that runs it."""
    pid = os.fork()
    if not pid:
        run_one(TARGETS[name](), steps, limit_s=5)
        os._exit(0)
    return os.waitpid(pid, 0)[1] != 0


def supervise(name: str, seed: int, minutes: float) -> int:
    """The exit status; a process that an input ends is replaced, and goes on behind that input."""
    shared = mmap.mmap(-1, 8)
    deadline, worst = time.monotonic() + minutes * 60, 0
    while (left_s := deadline - time.monotonic()) > 0:
        pid = os.fork()
        if not pid:
            os._exit(_work(name, seed, left_s / 60, shared))
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        worst = max(worst, int(status != 0))
        if status in {0, _FOUND}:
            break
        (number,) = _AT.unpack(shared[:8])
        target = TARGETS[name]()
        steps = target.make(make_rng(name, seed, number))
        target.close()
        sys.stdout.write(f"{name}: input {number} of seed {seed} ended the process ({status})\n")
        small = shrink(steps, lambda tried: _ends(name, tried))
        sys.stdout.write(f"kept: {keep(name, small)}\n{render(small)[:2000]}\n")
        shared[:8] = _AT.pack(number + 1)
    return worst


def main() -> int:
    """The exit status: 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", help=f"any of {', '.join(TARGETS)}; all of them without")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long, shared by the targets")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other inputs")
    chosen = parser.parse_args()
    names = chosen.targets or list(TARGETS)
    for name in names:
        for file, steps in list_corpus(name):
            target = TARGETS[name]()
            error = run_one(target, steps)
            target.close()
            if error is not None:
                sys.stdout.write(f"{name}: {file} of the corpus breaks something again: {error!r}\n")
                return _FOUND
    return max(supervise(name, chosen.seed, chosen.minutes / len(names)) for name in names)


if __name__ == "__main__":
    sys.exit(main())
