"""What the agents' recorded streams look like on a terminal."""

import json
import os
from datetime import UTC, datetime

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from agent_relay.domain.session import Leg
from agent_relay.session.turns.output import read_record
from agent_relay.session.turns.report import report_agent_output
from tests.faces.render.views import show

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "streams")
STREAMS = sorted(name for name in os.listdir(FOLDER) if name.endswith(".jsonl"))


@pytest.mark.parametrize("name", STREAMS)
def test_a_recorded_turn_looks_as_written_down(name: str) -> None:
    """Words, thoughts, tools, diffs and plans of a real agent, each in its form."""
    agent = name.split("-", maxsplit=1)[0]
    headless = load_adapter(f"{find_builtin_folder()}/{agent}").adapter.headless
    assert headless is not None
    leg = Leg("L1", agent, 1, datetime(2026, 11, 20, tzinfo=UTC), headless=True)
    events = []
    with open(os.path.join(FOLDER, name), encoding="utf-8") as stream:
        for line in stream:
            told = (report_agent_output(said, leg) for said in read_record(headless.says, json.loads(line)))
            events += [event.model_dump(mode="json") for event in told if event is not None]
    shown = show(*events, {"type": "end", "outcome": "done"}, columns=100)
    with open(os.path.join(FOLDER, name.replace(".jsonl", ".txt")), encoding="utf-8") as page:
        assert shown == page.read()
