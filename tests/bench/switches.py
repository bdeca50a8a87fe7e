"""From a limit on the screen until the next agent's process runs, and what each step of it takes."""

import itertools
import json
import os
import statistics
import time
from dataclasses import dataclass

from agent_relay.domain.events.session import Event
from agent_relay.store.journal import read_events
from agent_relay.system.disk.folders import get_folders
from tests.bench.measure import Effort
from tests.bench.wrappers import COMMAND, Prepared, World, open_world

STEPS = {
    "limit seen": "signal.seen",
    "successor chosen": "handoff.begun",
    "predecessor quit": "leg.ended",
    "its end written": "handoff.stopped",
    "packet published": "packet.published",
    "start begun": "leg.starting",
    "successor spawned": "leg.started",
}
"""Each step and the line of the journal that ends it, in their order."""
QUIT = "predecessor quit"
_LIMIT = "You've hit your session limit"
_WORKED_S = 4.0
"""Nobody's limit comes in the daemon's first seconds."""


@dataclass(frozen=True)
class Switches:
    """Milliseconds of each step, once a round, in the order of `STEPS`."""

    steps_ms: dict[str, list[float]]

    @property
    def without_quitting_s(self) -> float:
        """From the limit to the successor, the predecessor's quitting apart: the median of the rounds."""
        rounds = zip(*(times for step, times in self.steps_ms.items() if step != QUIT), strict=True)
        return statistics.median(map(sum, rounds)) / 1000


def measure_switches(effort: Effort) -> Switches:
    """One failover between two scripted agents a round, under one daemon, seen from the terminal."""
    steps: dict[str, list[float]] = {step: [] for step in STEPS}
    with open_world() as world:
        _write_parts(world)
        for _ in range(max(2, effort.rounds // 3)):
            for step, took_ms in _switch(world).items():
                steps[step].append(took_ms)
    return Switches(steps)


def _write_parts(world: World) -> None:
    parts = {
        "demo": {"when": "limit", "do": [{"limit": _LIMIT, "resets_in_s": 7200}]},
        "understudy": {"when": "", "do": [{"say": "going on"}, {"wait_s": 600}]},
    }
    world.env["DEMO_AGENT_SCREENPLAYS"] = world.folder
    for name, scene in parts.items():
        with open(os.path.join(world.folder, f"{name}.json"), "w", encoding="utf-8") as file:
            json.dump({"scenes": [scene]}, file)
    world.write_order(*parts)


def _switch(world: World) -> dict[str, float]:
    session = world.open(Prepared([*COMMAND, "agent", "demo"], world.make_tree()))
    session.wait_for(b"ready | demo")
    time.sleep(_WORKED_S)
    session.type(b"limit\r")
    session.wait_for(_LIMIT.encode())
    shown_at = time.time()
    session.wait_for(b"going on")
    found = {event.body.name: event.at.timestamp() for event in reversed(_read_journal(session.cwd))}
    world.stop(session)
    # No agent of one round may rest in the next.
    os.unlink(get_folders(world.env).ledger)
    moments = [shown_at, *(found[name] for name in STEPS.values())]
    # The terminal and the daemon are told by different descriptors: either may be the first to know.
    return {
        step: max(0.0, later - before) * 1000
        for step, (before, later) in zip(STEPS, itertools.pairwise(moments), strict=True)
    }


def _read_journal(tree: str) -> list[Event]:
    sessions = os.path.join(tree, ".agent-relay", "sessions")
    (session,) = os.listdir(sessions)
    return read_events(os.path.join(sessions, session, "journal.jsonl"))


def render_steps(switches: Switches) -> list[str]:
    """The table of steps: milliseconds, and the share of the whole in per cent."""
    middle = {step: statistics.median(times) for step, times in switches.steps_ms.items()}
    whole = sum(middle.values()) or 1.0
    lines = [f"{'limit on the screen to successor, ms':38}{whole:>9.0f}"]
    return lines + [f"  {step:36}{took:>9.0f}{100 * took / whole:>6.0f} %" for step, took in middle.items()]
