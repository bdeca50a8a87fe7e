"""A limit of one model at work: the same agent goes on in its own conversation, on another model."""

import pytest

from agent_relay.domain.state import State
from agent_relay.faces.cli.session.status import list_columns
from agent_relay.store.session_index import read_summary
from tests.support.at_work import LIMIT, WorkingWorld

pytestmark = pytest.mark.size("every")

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


CONFIG = 'model_remedy = "model"\n[agents.demo]\nmodel = "large"\nfallback_model = "small"\n'


@pytest.mark.size("test")
def test_a_limited_model_is_replaced_by_the_fallback_of_the_same_agent(world: WorkingWorld) -> None:
    """The user chose it in their configuration; the next agent need not come."""
    world.play(demo=SCENES)
    world.configure(CONFIG)
    session = world.begin()
    world.say(session, "hello")
    first = world.finish_turn(session).living_leg
    world.say(session, "out")
    leg = world.wait_for(session, lambda found: len(found.done) == 1, "it goes on").living_leg
    assert first is not None
    assert leg is not None
    assert (leg.agent, leg.model, leg.native_id) == ("demo", "small", first.native_id)
    assert read_model(leg.child_pid) == b"small"
    message = str(world.where(session, "message"))
    assert message.startswith("→ demo hit its large model limit (resets ")
    assert ". Continuing with demo on small. Packet: " in message
    waiting = world.read_packet(session)["unprocessed_prompt"]
    assert isinstance(waiting, dict)
    assert waiting["text"] == "out"
    world.wait_state(session, State.READY)
    assert world.leg_folder(session).endswith(leg.id)


def test_the_agents_own_model_is_offered_when_it_resets_and_taken_in_the_same_conversation(
    world: WorkingWorld,
) -> None:
    """The fallback was the lesser evil; the way back is one command."""
    world.play(demo=[{"when": "out", "do": [MODEL_LIMIT | {"resets_in_s": 20}]}, SCENES[-1]])
    world.configure(CONFIG)
    session = world.begin_worked("hello")
    world.say(session, "out")
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
