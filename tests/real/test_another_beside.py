"""Another conversation of the same agent in the same repository is nobody's business of ours."""

import pytest

from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    LIMITS,
    order,
    read_work,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
)

OURS = "Write a page about marigolds."
NEXT = "Write a page about tulips."
THEIRS = "Write a page about heliotropes."
PLAIN = {"codex": ["codex", "--no-daemon"], "opencode": ["opencode"]}
GOES_ON = "I pick up where it stopped."


def ask(world: World, terminal: Terminal, agent: str, text: str, answer: str) -> None:
    """`text` is typed into the agent and answered."""
    world.play(agent, say(answer))
    type_line(terminal, text)
    terminal.wait_for(answer)
    terminal.wait_quiet()


def open_both(world: World, agent: str) -> Terminal:
    """The terminal of a session of ours, which nobody has asked anything; a plain one beside it was."""
    real_seeds.free_hands(world.home)
    order(world, agent, "claude")
    ours = world.open(world.relay(agent))
    wait_prompt(ours, agent)
    plain = world.open(PLAIN[agent])
    wait_prompt(plain, agent)
    ask(world, plain, agent, THEIRS, "An answer to a stranger.")
    return ours


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_the_conversation_beside_ours_is_not_handed_over(world: World, agent: str) -> None:
    """The first prompt meets the limit: the newest conversation of the folder is somebody else's by then."""
    ours = open_both(world, agent)
    world.play(agent, LIMITS[agent])
    world.play("claude", say(GOES_ON))
    type_line(ours, OURS)
    heard = wait_heard(world, ours, "claude")
    wait_taken_over(world, ours, "claude")
    assert OURS in heard
    assert "heliotropes" not in heard


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_the_agent_returns_into_our_conversation_and_not_into_the_one_beside(
    world: World, agent: str
) -> None:
    """Native resume goes by the conversation's id: with the wrong one it would go on in a stranger's work."""
    ours = open_both(world, agent)
    ask(world, ours, agent, OURS, "The first answer.")
    world.play("claude", say(GOES_ON))
    second = world.open(world.relay("claude"))
    heard = wait_heard(world, second, "claude")
    wait_taken_over(world, second, "claude")
    assert OURS in heard
    assert "heliotropes" not in heard
    before = len(world.requests(agent))
    world.play(agent, say("Back again."))
    third = world.open(world.relay(agent))
    again = wait_heard(world, third, agent, before + 1)
    session = wait_taken_over(world, third, agent)
    assert [leg.agent for leg in session.legs] == [agent, "claude", agent]
    assert session.legs[2].native_id == session.legs[0].native_id
    assert OURS in again
    assert "heliotropes" not in again


@pytest.mark.parametrize("agent", ["codex", "opencode"])
def test_a_conversation_begun_anew_within_the_agent_is_the_one_handed_over(world: World, agent: str) -> None:
    """What the user left behind with `/new` must not come back with the successor."""
    real_seeds.free_hands(world.home)
    order(world, agent, "claude")
    ours = world.open(world.relay(agent))
    wait_prompt(ours, agent)
    ask(world, ours, agent, THEIRS, "The first answer.")
    type_line(ours, "/new")
    if agent == "codex":
        ours.wait_for("Where should the new conversation run")
        ours.send("\r")
    ours.wait_until(lambda: "The first answer" not in ours.screen, "a new conversation")
    ours.wait_quiet()
    ask(world, ours, agent, OURS, "The second answer.")
    world.play(agent, LIMITS[agent])
    world.play("claude", say(GOES_ON))
    type_line(ours, NEXT)
    heard = wait_heard(world, ours, "claude")
    wait_taken_over(world, ours, "claude")
    assert NEXT in heard
    assert OURS in heard
    assert "heliotropes" not in heard
    assert read_work(world).legs[0].native_id
