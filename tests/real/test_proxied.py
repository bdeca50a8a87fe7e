"""The real agents with `proxy = true`: they work as without, and their limits are seen by the proxy."""

import json
import os
import subprocess
from typing import Any

import pytest

from agent_relay.domain.events.session import SignalSeen
from agent_relay.store.journal import read_events
from agent_relay.system.disk.folders import get_folders
from tests.support import real_seeds
from tests.support.provider.steps import call, read, say
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import LIMITS, describe, find_journals, order
from tests.support.sizes import sized

DECOY = "The old log said: HTTP 429 rate_limit_error. You've hit your session limit · resets 9pm (UTC)."
SCOPES = {"claude": "account", "codex": "account", "gemini": "model", "opencode": "account"}


def run(world: World, agent: str, task: str) -> subprocess.CompletedProcess[str]:
    """One turn without a screen."""
    return world.run(world.relay("run", agent, task, "--json"))


def read_signals(world: World) -> list[SignalSeen]:
    """Every signal of the project's sessions."""
    bodies = (event.body for path in find_journals(world) for event in read_events(path))
    return [body for body in bodies if isinstance(body, SignalSeen)]


def show_proxy(world: World) -> dict[str, Any]:
    """What `agent-relay proxy --json` says."""
    done = world.run(world.relay("proxy", "--json"))
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("agent", sized(AGENTS, ["gemini"]))
def test_an_agent_works_through_the_proxy_and_its_limit_is_seen_there(world: World, agent: str) -> None:
    """Words about limits are nobody's limit; a provider's refusal is one, at once and with its reset."""
    real_seeds.free_hands(world.home)
    config = get_folders(world.env()).config
    os.makedirs(config, mode=0o700, exist_ok=True)
    with open(f"{config}/config.toml", "w", encoding="utf-8") as file:
        file.write("proxy = true\n")
    order(world, agent, only=True)
    looked = call(read(agent, path=f"{world.project}/calc.py"), text="I look.")
    world.play(agent, looked, say(DECOY))
    first = run(world, agent, "What does the old log say?")
    assert first.returncode == 0, f"{first.stderr}\n{describe(world)}"
    assert DECOY in json.dumps(first.stdout, ensure_ascii=False) or "HTTP 429" in first.stdout
    assert read_signals(world) == []
    shown = show_proxy(world)
    assert (shown["enabled"], shown["running"], shown["legs"]) == (True, True, [])
    world.play(agent, looked, LIMITS[agent])
    second = run(world, agent, "Make add() right.")
    assert second.returncode == 3, f"{second.stderr}\n{describe(world)}"
    signals = read_signals(world)
    assert {(one.scope, one.decides) for one in signals} == {(SCOPES[agent], True)}
    seen = [one for one in signals if one.source == "proxy"]
    assert len(seen) == 1
    # The quota of a day is worded without its end.
    assert bool(seen[0].until) == (agent != "gemini")
    with open(get_folders(world.env()).daemon_log, encoding="utf-8") as file:
        assert "leg-without-proxy" not in file.read()
