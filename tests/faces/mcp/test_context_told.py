"""An agent learns from its tools how full its context is, and may ask for it to be compacted."""

import json

import pytest

from agent_relay.domain.limits import Level
from tests.engine.test_context_at_work import configure, count, wait_level
from tests.support.at_work import begin, finish_turn, say
from tests.support.mcp_client import read_token, tool_client
from tests.support.relay_world import RelayWorld

pytestmark = pytest.mark.size("test")

NOTE = "note_by_agent_relay"


def test_the_next_answer_of_any_tool_says_it_once(world: RelayWorld) -> None:
    """An agent whose hooks say nothing learns of it in the middle of its work; `status` always knows."""
    configure(world, '[context]\nmode = "ask"\n')
    session = begin(world)
    with tool_client(world, *read_token(world, session)) as client:
        assert NOTE not in json.loads(client.call("list"))
        say(world, session, "to 720")
        wait_level(world, session, Level.ADVISE)
        finish_turn(world, session)
        told = json.loads(client.call("list"))
        assert told[NOTE].startswith(
            "Note by agent-relay, not by the user: your context is 72 % full (720 of 1,000 tokens). The user"
        )
        assert NOTE not in json.loads(client.call("list"))
        known = json.loads(client.call("status"))["context"]
        assert known == {"used": 720, "room": 1000, "percent_full": 72, "mode": "ask"}
        assert not json.loads(client.call("compact", reason="a part is done"))["compacts"]
        asks = "→ demo asks for its context to be compacted. If you agree, do so at its prompt"
        assert world.ask("where", session=session)["message"] == asks
        assert client.try_call("compact") == ("that is requested already", True)
    assert count(world, session, "context.compacting") == 0


def test_a_wish_is_granted_by_the_agents_own_command(world: RelayWorld) -> None:
    """At the end of its turn, long before it is full."""
    configure(world, '[context]\nmode = "compact"\n')
    session = begin(world)
    say(world, session, "to 720")
    wait_level(world, session, Level.ADVISE)
    finish_turn(world, session)
    with tool_client(world, *read_token(world, session)) as client:
        assert json.loads(client.call("compact"))["compacts"]
        wait_level(world, session, Level.LOW)
        assert client.try_call("compact")[0].startswith("a context of this session was relieved a short")
    assert count(world, session, "context.compacting") == 1


def test_a_mode_of_the_users_is_not_overruled(world: RelayWorld) -> None:
    """It is refused with that reason."""
    configure(world, '[context]\nmode = "handoff"\n')
    session = begin(world)
    with tool_client(world, *read_token(world, session)) as client:
        text, is_error = client.try_call("compact")
        assert (text.partition(". ")[0], is_error) == (
            'the user set context.mode to "handoff", so relay compacts nothing',
            True,
        )
