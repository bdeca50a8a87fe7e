"""What is seen of the real agents by whoever watches: screen, context, tokens, model, usage windows."""

import json

import pytest

from tests.real.test_context import HELD, ROOMS, talk
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import order


def look(world: World) -> dict[str, dict[str, object]]:
    """The newest event of each type that `watch` prints now."""
    done = world.run(world.relay("watch", "--no-follow", "--json"))
    assert done.returncode == 0, done.stderr
    return {str(event["type"]): event for event in map(json.loads, done.stdout.splitlines())}


def look_until(world: World, terminal: Terminal, agent: str) -> dict[str, dict[str, object]]:
    """The same once everything is known: agents write their records a moment after their screens."""
    found: list[dict[str, dict[str, object]]] = []

    def is_known() -> bool:
        found.append(look(world))
        now, screen = found[-1]["session"], found[-1].get("screen", {})
        context, tokens, rows = now["context"], now["tokens"], screen.get("rows")
        is_full = isinstance(context, dict) and context["used"] == HELD[agent]
        is_counted = isinstance(tokens, dict) and tokens["total"] >= HELD[agent]
        is_shown = isinstance(rows, list) and any("I keep heliotrope" in row for row in rows)
        return is_full and is_counted and is_shown and bool(now["model"])

    terminal.wait_until(is_known, "context, tokens, model and answer to be seen")
    return found[-1]


def count_tokens(world: World, session: str) -> object:
    """What `metrics` tells of the session: how many, or nothing yet."""
    done = world.run(world.relay("metrics", session, "--json"))
    return json.loads(done.stdout)["total"]["total_tokens"]


@pytest.mark.parametrize("agent", AGENTS)
def test_a_watcher_sees_what_the_agent_holds_and_has_used(world: World, agent: str) -> None:
    """The provider's own numbers, while the agent lives, and the same tokens as `metrics` tells."""
    order(world, agent)
    terminal, _ = talk(world, agent, HELD[agent])
    seen = look_until(world, terminal, agent)
    now = seen["session"]
    assert (now["agent"], now["headless"]) == (agent, False)
    assert now["context"] == {
        "used": HELD[agent],
        "room": ROOMS[agent],
        "percent": 100 * HELD[agent] // ROOMS[agent],
    }

    def is_same() -> bool:
        tokens = look(world)["session"]["tokens"]
        # Which session of its own an agent is at may be in the journal only when its leg ends.
        return isinstance(tokens, dict) and count_tokens(world, session) in {None, tokens["total"]}

    session = str(now["session"])
    terminal.wait_until(is_same, "both to tell the same tokens")
