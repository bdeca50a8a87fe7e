"""Successors that take their packet badly: slowly, with returns swallowed, or busy with their own tools."""

import glob
import json
import os
import shutil
import sys
from datetime import datetime

import pytest

from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import begin, has_taken_over, restart, say
from tests.support.relay_world import CHECKOUT, RelayWorld, wait_until

pytestmark = pytest.mark.size("test")


def add_fault(world: RelayWorld, fault: str) -> None:
    """The understudy has a fault from now on."""
    folder = f"{world.folders.config}/adapters/understudy"
    shutil.copytree(os.path.join(tree.ADAPTERS, "understudy"), folder)
    program = [sys.executable, f"{CHECKOUT}/tests/support/faulty_agent.py", f"{tree.ADAPTERS}/demo", fault]
    with open(f"{folder}/start.sh", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {" ".join(program)} "$@"\n')
    os.chmod(f"{folder}/start.sh", 0o700)
    with open(f"{folder}/adapter.toml", encoding="utf-8") as file:
        text = file.read().replace('"../demo/agent.py"', '"./start.sh"')
    with open(f"{folder}/adapter.toml", "w", encoding="utf-8") as file:
        file.write(text)
    restart(world)


def read_rows(world: RelayWorld) -> list[dict[str, object]]:
    """What the understudy's own record says."""
    rows: list[dict[str, object]] = []
    for path in glob.glob(f"{world.home}/.demo-agent/understudy/*.jsonl"):
        with open(path, encoding="utf-8") as file:
            rows += [json.loads(line) for line in file if line.endswith("\n")]
    return rows


def read_prompts(world: RelayWorld) -> list[str]:
    """What the understudy was given, prompt by prompt."""
    return [str(row["text"]) for row in read_rows(world) if row["type"] == "prompt"]


@pytest.mark.parametrize(
    "fault",
    [
        "tools",
        "tools-first",
        "swallow",
        "newline",
        "late",
        "late-record",
        "deaf",
        "again",
    ],
)
def test_a_packet_is_one_prompt_however_its_agent_takes_it(world: RelayWorld, fault: str) -> None:
    """A packet that stood in the input line for ever was said to be delivered; a late one was given twice."""
    add_fault(world, fault)
    session = begin(world)
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy has taken over")
    wait_until(lambda: bool(read_prompts(world)), "the understudy was given a prompt")
    (prompt,) = read_prompts(world)
    assert prompt.count("Continue from the handoff-context above.") == 1
    assert prompt.count("<handoff-context>") == 1
    assert_true(world, session)


def test_a_packet_that_was_lost_at_its_return_is_given_once_more(world: RelayWorld) -> None:
    """The journal said that the handoff was done, and the agent sat idle all night."""
    add_fault(world, "lose")
    session = begin(world)
    say(world, session, "out")
    world.wait_for(session, has_taken_over, "the understudy has taken over", limit_s=400)
    (prompt,) = read_prompts(world)
    assert prompt.count("<handoff-context>") == 1
    assert_true(world, session)


def assert_true(world: RelayWorld, session: str) -> None:
    """The journal says that the packet was delivered when the agent's own record had it, and not before."""
    (delivered,) = (event for event in world.events(session) if event.body.name == "handoff.delivered")
    (row,) = (row for row in read_rows(world) if row["type"] == "prompt")
    assert delivered.at >= datetime.fromisoformat(str(row["at"]))


def test_the_task_is_given_to_an_agent_that_starts_its_tools_first(world: RelayWorld) -> None:
    """Its first sight is one of work, and nobody had asked it anything."""
    add_fault(world, "tools-first")
    session = str(world.open("understudy", task="Make it right.")["session"])
    world.wait_for(session, lambda found: found.state is State.READY and bool(read_prompts(world)), "a turn")
    assert read_prompts(world) == ["Make it right."]
