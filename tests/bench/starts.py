"""From the words `agent-relay AGENT` to the agent's first byte, with a daemon and without one."""

import sys
import time

from tests.bench.measure import Effort, Samples
from tests.bench.programs import READY
from tests.bench.wrappers import World, open_world

KINDS = ("python", "warm", "cold")
_BETWEEN_S = 1.5
"""Nobody starts an agent in the moment in which the last one ended: what follows an end is done by then."""
_SAYS_READY = f"""
import os, sys
with open(sys.argv[1], "w") as file: file.write(str(os.getpid()))
os.write(1, {READY!r})
os.read(0, 1)
"""
_AGENT = f"printf %s $$ >$0; printf {READY.decode()}; exec sleep 600"


def measure_starts(effort: Effort) -> Samples:
    """Milliseconds until something stands on the terminal, once a round.

    `python` is a bare Python that writes one line; `warm` and `cold` are an agent without a start of its own
    under agent-relay, whose daemon runs, or is started by the same command.
    """
    samples: Samples = {kind: [] for kind in KINDS}
    with open_world() as world:
        _start(world, "cold")
        for _ in range(effort.rounds):
            for kind in effort.shuffled(KINDS):
                samples[kind].append(_start(world, kind))
    return samples


def _start(world: World, kind: str) -> float:
    if kind == "cold":
        world.end_daemon()
    if kind == "python":
        prepared = world.prepare("direct", lambda pid_path: [sys.executable, "-c", _SAYS_READY, pid_path])
    else:
        prepared = world.prepare("relay", lambda pid_path: ["sh", "-c", _AGENT, pid_path])
    start = time.perf_counter()
    session = world.open(prepared)
    session.wait_for(READY)
    took_ms = (time.perf_counter() - start) * 1000
    world.end(session)
    time.sleep(_BETWEEN_S)
    return took_ms
