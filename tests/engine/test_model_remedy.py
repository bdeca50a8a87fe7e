"""A limit of one model at work: the same agent goes on in its own conversation, on another model."""

import json

import pytest

from agent_relay.domain.state import State
from agent_relay.faces.cli.session.status import list_columns
from agent_relay.store.session_index import read_summary
from tests.support.at_work import LIMIT, begin, finish_turn, folder_of, say
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import relay_world

pytestmark = pytest.mark.size("test")

MODEL_LIMIT = LIMIT | {"limit": "You've hit your large model limit"}
SCENES = [
    {"when": "out", "do": [{"say": "the shed is red"}, MODEL_LIMIT]},
    {"again": True, "do": [{"say": "heard"}]},
]


def read_model(pid: int) -> bytes:
    """The model the agent's process was started with."""
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        words = file.read().split(b"\0")
    return words[words.index(b"--model") + 1]


def test_a_limited_model_is_replaced_by_the_fallback_of_the_same_agent() -> None:
    """The user chose it in their configuration; the next agent need not come."""
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=SCENES)
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write('model_remedy = "model"\n[agents.demo]\nmodel = "large"\nfallback_model = "small"\n')
        world.start_daemon()
        session = begin(world)
        say(world, session, "hello")
        first = finish_turn(world, session).living_leg
        say(world, session, "out")
        found = world.wait_for(session, lambda found: len(found.done) == 1, "it goes on")
        leg = found.living_leg
        assert first is not None
        assert leg is not None
        assert (leg.agent, leg.model, leg.native_id) == ("demo", "small", first.native_id)
        assert read_model(leg.child_pid) == b"small"
        message = str(world.ask("where", session=session)["message"])
        assert message.startswith("→ demo hit its large model limit (resets ")
        assert ". Continuing with demo on small. Packet: " in message
        document = f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}"
        with open(document, encoding="utf-8") as file:
            assert json.load(file)["unprocessed_prompt"]["text"] == "out"
        world.wait_for(session, lambda found: found.state is State.READY, "its turn is over")
        assert folder_of(world, session).endswith(leg.id)


def test_the_agents_own_model_is_offered_when_it_resets_and_taken_in_the_same_conversation() -> None:
    """The fallback was the lesser evil; the way back is one command."""
    soon = [{"when": "out", "do": [MODEL_LIMIT | {"resets_in_s": 20}]}, SCENES[-1]]
    with relay_world() as world:
        world.environ |= write_screenplays(f"{world.folder}/plays", demo=soon)
        with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
            file.write('model_remedy = "model"\n[agents.demo]\nmodel = "large"\nfallback_model = "small"\n')
        world.start_daemon()
        session = begin(world)
        say(world, session, "hello")
        finish_turn(world, session)
        say(world, session, "out")
        found = world.wait_for(session, lambda found: found.offer == "demo", "its model is offered")
        assert [leg.model for leg in found.legs] == ["", "small"]
        assert list_columns(read_summary(world.project, session))[-1] == (
            "demo can have its own model again: press Ctrl-] and type /use demo"
        )
        world.ask("use", session=session, agent="demo")
        found = world.wait_for(session, lambda found: len(found.done) == 2, "it has its own model")
        leg = found.living_leg
        assert leg is not None
        assert (leg.agent, leg.model, leg.native_id, found.offer) == ("demo", "", found.legs[0].native_id, "")
        assert read_model(leg.child_pid) == b"large"
