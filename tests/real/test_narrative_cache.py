"""Asking for a handoff document leaves the provider's cache of the conversation as it is, where it can."""

import json
import os
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

import pytest

from tests.real.test_narrative import DOCUMENT, at_work, narrate, read_settled
from tests.support.provider.steps import call, edit, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS

Json = dict[str, Any]
LEAST = {"claude": 0.0, "codex": 1.0, "gemini": 0.0, "opencode": 1.0}
"""The part of the conversation's last request that the provider finds in its cache for the document's.

Two of them tell their model without a screen that they are another program, in the first words of all.
"""


def list_blocks(agent: str, body: Json) -> Iterator[object]:
    """What the model reads, in the order in which providers look it up in their caches: tools come first."""
    yield body.get("model")
    for tool in body.get("tools") or []:
        yield from tool.get("functionDeclarations", [tool])
    match agent:
        case "claude":
            yield from body["system"]
            yield from ((one["role"], one["content"]) for one in body["messages"])
        case "codex":
            yield body.get("instructions")
            yield from ({**one, "id": ""} for one in body["input"])
        case "gemini":
            yield body["systemInstruction"]
            yield from body["contents"]
        case _:
            yield from body["messages"]


def measure_kept(agent: str, before: Json, after: Json) -> float:
    """The part of `before` that `after` begins with, by its characters."""
    old, new = ([json.dumps(one) for one in list_blocks(agent, body)] for body in (before, after))
    kept = takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False))
    return sum(len(same) for same, _ in kept) / sum(map(len, old))


@pytest.mark.parametrize("agent", AGENTS)
def test_the_provider_knows_the_conversation_by_its_beginning(world: World, agent: str) -> None:
    """A long conversation read anew costs ten times as much; and still no tool does anything when called."""
    with at_work(world, agent, "heliotrope", "marigold") as (terminal, session):
        read_settled(world, terminal, agent)
        before = world.requests(agent)[-1]["body"]
        wrong, right = "    return a - b", "    return a + b"
        fixed = edit(agent, path=f"{world.project}/calc.py", old=wrong, new=right)
        world.play(agent, call(shell(agent, "touch trespass")), call(fixed), say(DOCUMENT))
        asked = len(world.requests(agent))
        assert narrate(world, session)["outcome"] == "written"
        kept = measure_kept(agent, before, world.requests(agent)[asked]["body"])
        assert kept >= LEAST[agent], f"{kept:.1%}"
        assert not os.path.exists(f"{world.project}/trespass")
        with open(f"{world.project}/calc.py", encoding="utf-8") as file:
            assert wrong in file.read()
