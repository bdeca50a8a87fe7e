"""What the real agents tell of a headless turn besides their words: changes, and what they think."""

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agent_relay.domain.protocol.run_output import build_run_schema
from tests.support import real_seeds
from tests.support.provider.steps import call, edit, read, say
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import describe


@pytest.mark.parametrize("agent", AGENTS)
def test_a_change_is_told_with_its_file_and_as_far_as_the_agent_tells_as_a_diff(
    world: World, agent: str
) -> None:
    """Who follows a turn wants to see what was changed, not that a tool was used."""
    path = f"{world.project}/calc.py"
    real_seeds.free_hands(world.home)
    change = edit(agent, path=path, old="    return a - b", new="    return a + b")
    world.play(agent, call(read(agent, path=path)), call(change, text="I mend it."), say("Done."))
    done = world.run(world.relay("run", agent, "Mend add().", "--json"))
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    allowed = Draft202012Validator(build_run_schema())
    for line in lines:
        allowed.validate(line)
    edits = [line for line in lines if line["type"] == "edit"]
    assert [line["path"] for line in edits] == [path], f"{done.stdout}{done.stderr}\n{describe(world)}"
    if agent != "codex":
        assert "-    return a - b\n+    return a + b" in edits[0]["diff"]
        assert edits[0]["call"] in {line["call"] for line in lines if line["type"] == "tool"}
