"""The level of effort a user chose for one real agent reaches the provider from the one that takes over."""

import json
from typing import Any

import pytest

from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_work import (
    LIMITS,
    order,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
)

CHOSEN = {"claude": ("--effort", "low"), "codex": ("-c", "model_reasoning_effort=low")}


def find_effort(agent: str, request: dict[str, Any]) -> object:
    """The level that the agent's request names."""
    body = request["body"]
    return body["output_config"]["effort"] if agent == "claude" else body["reasoning"]["effort"]


@pytest.mark.parametrize(("first", "last"), [("claude", "codex"), ("codex", "claude")])
def test_the_chosen_level_is_passed_on(world: World, first: str, last: str) -> None:
    """Neither has it by default; the journal says so, and the next one's own arguments would count more."""
    order(world, first, last)
    world.play(first, LIMITS[first])
    world.play(last, say("I go on."))
    terminal = world.open(world.relay(first, "--", *CHOSEN[first]))
    wait_prompt(terminal, first)
    type_line(terminal, "Make add() right.")
    wait_heard(world, terminal, first)
    assert find_effort(first, world.requests(first)[0]) == "low"
    wait_heard(world, terminal, last)
    session = wait_taken_over(world, terminal, last)
    assert find_effort(last, world.requests(last)[0]) == "low"
    assert [leg.effort for leg in session.legs] == ["", "low"]
    done = world.run(world.relay("handoff", "show", session.done[0].id))
    assert f"effort: low, passed on to {last}" in done.stdout
    shown = world.run(world.relay("handoff", "show", session.done[0].id, "--json"))
    lane = json.loads(shown.stdout)["lane"]
    assert (lane["name"], lane["why"]) == ("packet", "it had no conversation here")
