"""No part of a private key is shown, wherever the rest of it stands."""

import random

import pytest

from tests.faces.cli.test_recall import claude_leg, lay_session
from tests.faces.cli_run import World
from tests.redact.planted import BASE64, make


@pytest.mark.size("every")
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
