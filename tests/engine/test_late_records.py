"""What the user asked last reaches the successor, however far the agent's own record lags behind."""

import glob
import json
import os
import sys

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.store.packets import read_packet
from tests.house import tree
from tests.support.at_work import LIMIT, finish_turn, folder_of, restart, say
from tests.support.handoffs import write_screenplays
from tests.support.own_adapters import add_adapter
from tests.support.relay_world import CHECKOUT, RelayWorld, wait_until

pytestmark = pytest.mark.size("test")

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


def add_late_agent(world: RelayWorld, lag: str) -> None:
    """An agent `late`, whose hooks tell at once what its transcript tells `lag` seconds after, or never."""
    world.environ |= write_screenplays(f"{world.folder}/plays", late=SCENES)
    folder = add_adapter(world, "late", program="start.sh")
    program = [sys.executable, f"{CHECKOUT}/tests/support/late_record.py", f"{tree.ADAPTERS}/demo", lag]
    with open(f"{folder}/start.sh", "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nexec {" ".join(program)} "$@"\n')
    os.chmod(f"{folder}/start.sh", 0o700)
    change(
        f"{folder}/adapter.toml", "env = {", 'env = { LATE_RECORD_HOOKS = "{leg_folder}/hooks.jsonl",', HOOKS
    )
    change(f"{folder}/adapter.toml", '.demo-agent}/demo"', '.demo-agent}/late"', "")
    change(f"{folder}/rules.toml", '["limit-row", "notice"]', '["limit-row", "notice", "failure"]', RULES)
    with open(f"{world.folders.config}/config.toml", "w", encoding="utf-8") as file:
        file.write('order = ["late", "understudy"]\n')
    restart(world)


def change(path: str, old: str, new: str, more: str) -> None:
    """The file says `new` for `old`, and `more` at its end."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert old in text
    with open(path, "w", encoding="utf-8") as file:
        file.write(text.replace(old, new) + more)


def has_taken_over(session: Session) -> bool:
    return session.agent == "understudy" and session.handoff is None and len(session.done) == 1


def read_given(world: RelayWorld, session: str) -> ResumePacket:
    """The packet of the session's handoff, once that is over."""
    done = world.wait_for(session, has_taken_over, "the understudy took over").done[0]
    return read_packet(f"{world.project}/.agent-relay/sessions/{session}/{done.json_path}")


def read_journal(world: RelayWorld, session: str) -> str:
    """The session's journal as it stands."""
    with open(f"{world.project}/.agent-relay/sessions/{session}/journal.jsonl", encoding="utf-8") as file:
        return file.read()


def list_rows(world: RelayWorld) -> list[str]:
    """The prompts in the late agent's own transcripts."""
    rows = []
    for path in glob.glob(f"{world.home}/.demo-agent/late/*.jsonl"):
        with open(path, encoding="utf-8") as file:
            rows += [json.loads(line) for line in file]
    return [row["text"] for row in rows if row["type"] == "prompt"]


def test_a_prompt_whose_row_is_never_written_stands_in_the_packet(world: RelayWorld) -> None:
    """The limit was heard by a hook, the agent stopped, and the row it held back was lost with it."""
    add_late_agent(world, "never")
    session = str(world.open("late")["session"])
    world.wait_for(session, lambda now: now.state is State.READY, "the agent is ready")
    say(world, session, "look around")
    finish_turn(world, session)
    say(world, session, ASKED)
    packet = read_given(world, session)
    assert list_rows(world) == ["look around"]
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == ASKED
    assert packet.unprocessed_prompt.source is not None
    assert packet.unprocessed_prompt.source.transcript == "relay's journal"
    assert packet.next_task == ASKED


def test_a_row_that_comes_late_is_waited_for_before_its_agent_is_stopped(world: RelayWorld) -> None:
    """The record says more than the prompt: what the agent did, and in which order."""
    add_late_agent(world, "0.3")
    session = str(world.open("late")["session"])
    world.wait_for(session, lambda now: now.state is State.READY, "the agent is ready")
    say(world, session, ASKED)
    packet = read_given(world, session)
    assert list_rows(world) == [ASKED]
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == ASKED
    assert packet.unprocessed_prompt.source is not None
    assert packet.unprocessed_prompt.source.transcript.startswith(f"{world.home}/.demo-agent/late/")


def test_a_prompt_survives_the_daemon_that_heard_of_it(world: RelayWorld) -> None:
    """Killed between the prompt and the limit, it took along all it knew but for its journal."""
    add_late_agent(world, "never")
    session = str(world.open("late")["session"])
    world.wait_for(session, lambda now: now.state is State.READY, "the agent is ready")
    say(world, session, f"{ASKED}, slowly")
    wait_until(lambda: "paint the shed" in read_journal(world, session), "the journal has the prompt")
    world.kill_daemons()
    os.unlink(f"{folder_of(world, session)}/hooks.jsonl")
    world.start_daemon()
    packet = read_given(world, session)
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == f"{ASKED}, slowly"
