"""A whole turn is asked for by its name, and who asks wrongly is told how."""

from pathlib import Path

import pytest

from tests.faces.cli.test_recall import claude_leg, lay_session
from tests.faces.cli_run import World, create_repository


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A repository with one commit."""
    return create_repository(str(tmp_path))


def test_a_turn_that_the_newest_agent_has_not_is_named_where_it_is(world: World) -> None:
    """A packet says `turn 2` of an agent before; who asks for that is told how to write it."""
    lay_session(
        world,
        claude_leg(world, 1, ("one", "first answer"), ("two", "second answer")),
        claude_leg(world, 2, ("three", "third answer")),
    )
    done = world.run("recall", "--turn", "2")
    assert (done.status, done.out) == (1, "")
    assert done.err.splitlines()[1:] == ["  The last one is 1. Of earlier agents: --turn 1:2"]


def test_words_beside_a_whole_turn_are_refused(world: World) -> None:
    """Nothing searches for them; who wrote them would take the turn for what was found."""
    lay_session(world, claude_leg(world, 1, ("one", "first answer")))
    done = world.run("recall", "--turn", "1", "first", "answer")
    assert (done.status, done.out) == (2, "")
    assert done.err == (
        "agent-relay: words to look for and --turn exclude each other\n"
        "  agent-relay recall --turn 1, or: agent-relay recall QUERY\n"
    )
