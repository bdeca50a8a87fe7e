"""What relay costs while nothing happens: nothing."""

import contextlib
import os
import time

from agent_relay.domain.state import State
from tests.support.peak import read_ticks
from tests.support.relay_world import RelayWorld, wait_until
from tests.support.seats import seat, seated_world

IDLE_S = 5.0
QUIET_S = 5.0  # after a screen settled, late records are looked for twice, four seconds apart
Spent = dict[str, tuple[int, int]]


def read_spent(world: RelayWorld) -> Spent:
    """Processor ticks and wake-ups of each of relay's processes so far; agents are not ours."""
    found = {}
    for pid, command in world.processes().items():
        if "agent.py" not in command:
            # What ends while it is looked at, as a program that git runs, is no part of an idle world.
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[f"{pid} {command}"] = _read_process(pid)
    return found


def _read_process(pid: int) -> tuple[int, int]:
    wakeups = sum(_read_wakeups(f"/proc/{pid}/task/{task}") for task in os.listdir(f"/proc/{pid}/task"))
    return read_ticks(pid), wakeups


def _read_wakeups(task: str) -> int:
    with open(f"{task}/status", encoding="utf-8") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))


def is_quiet(world: RelayWorld) -> bool:
    """Whether nobody woke up for `QUIET_S` seconds."""
    before = read_spent(world)
    time.sleep(QUIET_S)
    return read_spent(world) == before


def test_idle_sessions_cost_no_processor_time() -> None:
    """Terminals stay open for days, on batteries: a wake-up a second would be felt."""
    with seated_world() as world, contextlib.ExitStack() as stack:
        people = [stack.enter_context(seat(world, "agent", "demo", "--new")) for _ in range(3)]
        for person in people:
            person.wait_for("ready | demo")
        for session in os.listdir(f"{world.project}/.agent-relay/sessions"):
            world.wait_for(session, lambda found: found.state is State.READY, "the agent is ready")
        wait_until(lambda: is_quiet(world), "everything has settled")
        before = read_spent(world)
        # The server is what the processes that build packets are forked from.
        assert len(before) == 8, "a daemon with a server, three holders, three terminals"
        time.sleep(IDLE_S)
        after = read_spent(world)
        assert after.keys() == before.keys()
        for name, (ticks, wakeups) in after.items():
            assert ticks - before[name][0] <= 1, name
            assert wakeups - before[name][1] <= 2, name
