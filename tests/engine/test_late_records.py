"""What the user asked last reaches the successor, however far the agent's own record lags behind."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.house import tree
from tests.support.at_work import LIMIT, WorkingWorld
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import CHECKOUT, wait_until

pytestmark = pytest.mark.size("every")

ASKED = "You are out: paint the shed blue"
HOOKS = """
[[sources]]
role = "hook"
framing = "jsonl"
path = "{leg_folder}/hooks.jsonl"
names = { native_id = "payload.session_id" }
"""
RULES = """
[[feeds]]
name = "failure"
source = "hook"
where = { equals = { hook_event_name = "StopFailure" } }
text = "words"

[[progress]]
source = "hook"
means = "prompt"
where = { equals = { hook_event_name = "UserPromptSubmit" } }
text = "prompt"
"""
SCENES = [
    {"when": "slowly", "do": [{"wait_s": 2}, LIMIT]},
    {"when": "out", "do": [LIMIT]},
    {"again": True, "do": [{"say": "demo heard you"}]},
]


def add_late_agent(world: WorkingWorld, lag: str) -> None:
    """An agent `late`, whose hooks tell at once what its transcript tells `lag` seconds after, or never."""
    world.play(late=SCENES)
    program = [sys.executable, f"{CHECKOUT}/tests/support/late_record.py", f"{tree.ADAPTERS}/demo", lag]
    folder = add_adapter(world, "late", script=f'exec {" ".join(program)} "$@"\n')
    change(
        f"{folder}/adapter.toml", "env = {", 'env = { LATE_RECORD_HOOKS = "{leg_folder}/hooks.jsonl",', HOOKS
    )
    change(f"{folder}/adapter.toml", '.demo-agent}/demo"', '.demo-agent}/late"', "")
    change(f"{folder}/rules.toml", '["limit-row", "notice"]', '["limit-row", "notice", "failure"]', RULES)
    Path(f"{world.folders.config}/config.toml").write_text('order = ["late", "understudy"]\n', "utf-8")


def change(path: str, old: str, new: str, more: str) -> None:
    """The file says `new` for `old`, and `more` at its end."""
    text = Path(path).read_text("utf-8")
    assert old in text
    Path(path).write_text(text.replace(old, new) + more, "utf-8")


def read_waiting(world: WorkingWorld, session: str) -> tuple[str, str]:
    """The prompt the packet says waits, and where it is known from, once the handoff is over."""
    world.wait_handed_over(session)
    waiting = world.read_packet(session)["unprocessed_prompt"]
    assert isinstance(waiting, dict)
    return waiting["text"], waiting["source"]["transcript"]


def list_rows(world: WorkingWorld) -> list[str]:
    """The prompts in the late agent's own transcripts."""
    paths = Path(world.home, ".demo-agent", "late").glob("*.jsonl")
    rows = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    return [row["text"] for row in rows if row["type"] == "prompt"]


@pytest.mark.size("test")
def test_a_prompt_whose_row_is_never_written_stands_in_the_packet(world: WorkingWorld) -> None:
    """The limit was heard by a hook, the agent stopped, and the row it held back was lost with it."""
    add_late_agent(world, "never")
    session = world.begin_worked("look around", "late")
    world.say(session, ASKED)
    assert read_waiting(world, session) == (ASKED, "relay's journal")
    assert list_rows(world) == ["look around"]
    assert world.read_packet(session)["next_task"] == ASKED


def test_a_row_that_comes_late_is_waited_for_before_its_agent_is_stopped(world: WorkingWorld) -> None:
    """The record says more than the prompt: what the agent did, and in which order."""
    add_late_agent(world, "0.3")
    session = world.begin("late")
    world.say(session, ASKED)
    text, source = read_waiting(world, session)
    assert text == ASKED
    assert source.startswith(f"{world.home}/.demo-agent/late/")
    assert list_rows(world) == [ASKED]


def test_a_prompt_survives_the_daemon_that_heard_of_it(world: WorkingWorld) -> None:
    """Killed between the prompt and the limit, it took along all it knew but for its journal."""
    add_late_agent(world, "never")
    session = world.begin("late")
    world.say(session, f"{ASKED}, slowly")
    journal = world.path(session, "journal.jsonl")
    wait_until(lambda: "paint the shed" in journal.read_text("utf-8"), "the journal has the prompt")
    world.kill_daemons()
    os.unlink(f"{world.leg_folder(session)}/hooks.jsonl")
    world.start_daemon()
    assert read_waiting(world, session)[0] == f"{ASKED}, slowly"
