import glob
import json
import sqlite3

import pytest

from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import AGENTS, Leg, check_gone, deliver, start, wait_ready


def find_native_id(world: World, leg: Leg) -> str:
    """The native session id: the one we chose, else what the agent's own files say."""
    if leg.values["native_id"]:
        return leg.values["native_id"]
    if leg.adapter.name == "codex":
        (rollout,) = glob.glob(f"{world.home}/.codex/sessions/*/*/*/rollout-*.jsonl")
        with open(rollout, encoding="utf-8") as file:
            return str(json.loads(file.readline())["payload"]["id"])
    with sqlite3.connect(f"{world.home}/.local/share/opencode/opencode.db") as database:
        return str(database.execute("select id from session").fetchone()[0])


@pytest.mark.size("test")
@pytest.mark.parametrize("agent", AGENTS)
def test_an_idle_agent_ends_cleanly_and_goes_on_when_it_is_resumed(world: World, agent: str) -> None:
    """A handoff by hand finds it at its prompt; it returns into its session, told what changed since."""
    world.play(agent, say("The first answer."), say("The answer after the return."))
    leg = start(world, agent)
    wait_ready(leg)
    deliver(leg, "remember the word heliotrope")
    leg.terminal.wait_for("The first answer")
    leg.terminal.wait_quiet()
    check_gone(world, leg, "ready")
    packet = f"{world.root}/packet.md"
    with open(packet, "w", encoding="utf-8") as file:
        file.write("<handoff-context>\nsince then: marigold\n</handoff-context>\n")
    again = start(world, agent, packet=packet, native_id=find_native_id(world, leg))
    again.terminal.wait_for("heliotrope")
    wait_ready(again)
    deliver(again, "go on" if leg.adapter.deliver.packet_by == "args" else "since then: marigold. go on")
    again.terminal.wait_for("The answer after the return")
    heard = world.requests(agent)
    assert len(heard) == 2
    assert "heliotrope" in heard[1]["text"]
    assert "marigold" in heard[1]["text"]
