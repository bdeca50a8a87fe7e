"""A limit of one model at work: the same agent goes on in its own conversation, on another model."""

import json

from agent_relay.domain.session import State
from tests.support.at_work import LIMIT, begin, finish_turn, folder_of, say
from tests.support.handoffs import write_screenplays
from tests.support.relay_world import relay_world

MODEL_LIMIT = LIMIT | {"limit": "You've hit your large model limit"}
SCENES = [
    {"when": "out", "do": [{"say": "the shed is red"}, MODEL_LIMIT]},
    {"again": True, "do": [{"say": "heard"}]},
]


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
        with open(f"/proc/{leg.child_pid}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
        assert words[words.index(b"--model") + 1] == b"small"
        message = str(world.ask("where", session=session)["message"])
        assert message.startswith("→ demo hit its large model limit (resets ")
        assert ". Continuing with demo on small. Packet: " in message
        document = f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].json_path}"
        with open(document, encoding="utf-8") as file:
            assert json.load(file)["unprocessed_prompt"]["text"] == "out"
        world.wait_for(session, lambda found: found.state is State.READY, "its turn is over")
        assert folder_of(world, session).endswith(leg.id)
