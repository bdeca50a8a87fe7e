"""A whole turn is asked for by its name, who asks wrongly is told how, and no part of a key is shown."""

import random
from pathlib import Path

import pytest

from tests.faces.cli.test_recall import claude_leg, lay_session
from tests.faces.cli_run import World, create_repository
from tests.redact.planted import BASE64, make

pytestmark = pytest.mark.size("test")


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


def test_lines_from_the_middle_of_a_private_key_are_not_shown(world: World) -> None:
    """They look like any base64; what shows them for what they are may be in another turn, or far above."""
    chance = random.Random(107)  # noqa: S311 - reproducible, not secret
    *body, other = [make(chance, BASE64, 64) for _ in range(321)]
    whole = "\n".join(("-----BEGIN PRIVATE KEY-----", *body[:26], "-----END PRIVATE KEY-----"))
    long = "\n".join(
        ("word " * 2000, "Private-Lines: 320", *body, "the lathe stands there", "word " * 20_000)
    )
    lay_session(
        world,
        claude_leg(world, 1, ("here it is", whole), ("and the zebra?", "\n".join((*body[8:12], other)))),
        claude_leg(world, 2, ("it is long", long)),
    )
    for words in (("zebra",), ("--turn", "1:2"), ("lathe",)):
        out = world.run("recall", *words, "--json").out
        assert words[-1] in out
        assert [line for line in body if line[8:30] in out] == []
    assert other in world.run("recall", "zebra").out
