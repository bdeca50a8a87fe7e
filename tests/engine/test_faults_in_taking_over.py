"""Successors that take their packet badly: slowly, with returns swallowed, or busy with their own tools."""

import glob
import json
import os
import shutil
import sys
from datetime import datetime
from pathlib import Path

import pytest

from agent_relay.domain.state import State
from tests.house import tree
from tests.support.at_work import WorkingWorld, has_taken_over
from tests.support.relay_world import CHECKOUT, wait_until

pytestmark = pytest.mark.size("every")


def add_fault(world: WorkingWorld, fault: str) -> None:
    """The understudy has a fault from now on."""
    folder = f"{world.folders.config}/adapters/understudy"
    shutil.copytree(os.path.join(tree.ADAPTERS, "understudy"), folder)
    program = [sys.executable, f"{CHECKOUT}/tests/support/faulty_agent.py", f"{tree.ADAPTERS}/demo", fault]
    Path(f"{folder}/start.sh").write_text(f'#!/bin/sh\nexec {" ".join(program)} "$@"\n', "utf-8")
    os.chmod(f"{folder}/start.sh", 0o700)
    adapter = Path(folder, "adapter.toml")
    adapter.write_text(adapter.read_text("utf-8").replace('"../demo/agent.py"', '"./start.sh"'), "utf-8")


def read_rows(world: WorkingWorld) -> list[dict[str, object]]:
    """What the understudy's own record says."""
    rows: list[dict[str, object]] = []
    for path in glob.glob(f"{world.home}/.demo-agent/understudy/*.jsonl"):
        with open(path, encoding="utf-8") as file:
            rows += [json.loads(line) for line in file if line.endswith("\n")]
    return rows


def read_prompts(world: WorkingWorld) -> list[str]:
    """What the understudy was given, prompt by prompt."""
    return [str(row["text"]) for row in read_rows(world) if row["type"] == "prompt"]


FAULTS = ("tools", "newline", "late-record", "again", "lose")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_packet_is_one_prompt_however_its_agent_takes_it(world: WorkingWorld, fault: str) -> None:
    """A packet that stood in the input line for ever was said to be delivered; a late one was given twice.

    One that was lost at its return is given once more: the agent sat idle all night.
    """
    add_fault(world, fault)
    session = world.begin()
    world.say(session, "out")
    world.wait_for(session, has_taken_over, "the understudy has taken over", limit_s=400)
    wait_until(lambda: bool(read_prompts(world)), "the understudy was given a prompt")
    (prompt,) = read_prompts(world)
    assert prompt.count("Continue from the handoff-context above.") == 1
    assert prompt.count("<handoff-context>") == 1
    assert_true(world, session)


def assert_true(world: WorkingWorld, session: str) -> None:
    """The journal says that the packet was delivered when the agent's own record had it, and not before."""
    (delivered,) = (event for event in world.events(session) if event.body.name == "handoff.delivered")
    (row,) = (row for row in read_rows(world) if row["type"] == "prompt")
    assert delivered.at >= datetime.fromisoformat(str(row["at"]))


def test_the_task_is_given_to_an_agent_that_starts_its_tools_first(world: WorkingWorld) -> None:
    """Its first sight is one of work, and nobody had asked it anything."""
    add_fault(world, "tools-first")
    session = world.begin("understudy", task="Make it right.")
    world.wait_for(session, lambda found: found.state is State.READY and bool(read_prompts(world)), "a turn")
    assert read_prompts(world) == ["Make it right."]
