"""An agent learns from its tools how full its context is, and may ask for it to be compacted."""

import json
from collections.abc import Iterator

import pytest

from agent_relay.domain.limits import Level
from tests.support.at_work import WorkingWorld, working_world
from tests.support.mcp_client import read_token, tool_client

pytestmark = pytest.mark.size("every")

NOTE = "note_by_agent_relay"
SCENES = [
    {"when": "to 720", "do": [{"context": 720, "say": "much"}]},
    {"again": True, "do": [{"context": 100, "say": "heard"}]},
]


@pytest.fixture
def world() -> Iterator[WorkingWorld]:
    """An agent whose context fills up as it is told."""
    with working_world(starts=False, demo=SCENES) as made:
        yield made


def begin(world: WorkingWorld, mode: str) -> str:
    """A session of a user who set that mode."""
    world.configure(f'[context]\nmode = "{mode}"\n')
    return world.begin()


def fill(world: WorkingWorld, session: str) -> None:
    """The agent's context is full enough to be told of, and its turn is over."""
    world.say(session, "to 720")
    world.wait_for(session, lambda found: found.context.level is Level.ADVISE, "the context to be full")
    world.finish_turn(session)


@pytest.mark.size("test")
def test_the_next_answer_of_any_tool_says_it_once(world: WorkingWorld) -> None:
    """An agent whose hooks say nothing learns of it in the middle of its work; `status` always knows."""
    session = begin(world, "ask")
    with tool_client(world, *read_token(world, session)) as client:
        assert NOTE not in json.loads(client.call("list"))
        fill(world, session)
        told = json.loads(client.call("list"))
        assert told[NOTE].startswith(
            "Note by agent-relay, not by the user: your context is 72 % full (720 of 1,000 tokens). The user"
        )
        assert NOTE not in json.loads(client.call("list"))
        known = json.loads(client.call("status"))["context"]
        assert known == {"used": 720, "room": 1000, "percent_full": 72, "mode": "ask"}
        assert not json.loads(client.call("compact", reason="a part is done"))["compacts"]
        asks = "→ demo asks for its context to be compacted. If you agree, do so at its prompt"
        assert world.where(session, "message") == asks
        assert client.try_call("compact") == ("that is requested already", True)
    assert "context.compacting" not in world.names(session)


def test_a_wish_is_granted_by_the_agents_own_command(world: WorkingWorld) -> None:
    """At the end of its turn, long before it is full."""
    session = begin(world, "compact")
    fill(world, session)
    with tool_client(world, *read_token(world, session)) as client:
        assert json.loads(client.call("compact"))["compacts"]
        world.wait_for(session, lambda found: found.context.level is Level.LOW, "the context to be small")
        assert client.try_call("compact")[0].startswith("a context of this session was relieved a short")
    assert world.names(session).count("context.compacting") == 1


def test_a_mode_of_the_users_is_not_overruled(world: WorkingWorld) -> None:
    """It is refused with that reason."""
    session = begin(world, "handoff")
    with tool_client(world, *read_token(world, session)) as client:
        text, is_error = client.try_call("compact")
        assert (text.partition(". ")[0], is_error) == (
            'the user set context.mode to "handoff", so relay compacts nothing',
            True,
        )
