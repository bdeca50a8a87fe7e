"""What agents were asked in a world whose daemon is killed while somebody asks, for tests."""

import glob
import json

from agent_relay.domain.state import State
from tests.support.relay_world import RelayWorld, is_stopped, kill, wait_until
from tests.support.runs import find_sessions


def kill_at(daemon: int, point: str) -> None:
    """The daemon froze at `point` and is killed there."""
    wait_until(lambda: is_stopped(daemon), f"the daemon froze {point}")
    kill(daemon)


def list_asked(world: RelayWorld, agent: str = "*") -> list[str]:
    """The prompts that one agent, or all of them, were given, by their own records."""
    found: list[str] = []
    folder = world.environ.get("DEMO_AGENT_HOME", f"{world.home}/.demo-agent")
    for path in sorted(glob.glob(f"{folder}/{agent}/*.jsonl")):
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line) for line in file if line.endswith("\n")]
        found += [str(row["text"]) for row in rows if row.get("type") == "prompt"]
    return found


def are_over(world: RelayWorld) -> bool:
    """Whether nothing is at work."""
    return all(world.session(session).state is State.ENDED for session in find_sessions(world))
