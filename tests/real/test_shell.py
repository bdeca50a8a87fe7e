"""The relay shell with the real agents: what a person does in it, from the first message on."""

import pytest

from agent_relay.domain.state import State
from tests.support import real_seeds
from tests.support.provider.steps import call, hang, say, shell
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_shell import (
    RELAY_KEY,
    enter,
    list_legs,
    open_shell,
    wait_shown,
    wait_turn_over,
)
from tests.support.real_work import LIMITS, order, type_line, wait_prompt, wait_work
from tests.support.sizes import sized

DOCUMENT = "## Goal\nKnow the word heliotrope.\n\n## Not to be believed\nnone"
PAIRS = [("claude", "codex"), ("codex", "gemini"), ("gemini", "opencode"), ("opencode", "claude")]


@pytest.mark.parametrize("agent", sized(AGENTS, ["codex"]))
def test_a_conversation_goes_on_from_turn_to_turn_and_through_the_agents_own_screen(
    world: World, agent: str
) -> None:
    """A turn, another one, `/attach` with a prompt typed there, and a turn again: one native session."""
    order(world, agent)
    world.play(agent, say("It subtracts."), say("Nobody tested it."))
    terminal = open_shell(world)
    enter(world, terminal, "What does calc.py do?", r"It subtracts\.")
    enter(world, terminal, "And why?", r"Nobody tested it\.")
    assert "What does calc.py do?" in world.requests(agent)[-1]["text"]
    world.play(agent, say("Said on the screen."))
    terminal.send("/attach\r")
    wait_prompt(terminal, agent)
    wait_work(world, terminal, lambda found: found.state is State.READY, "the agent to be ready")
    type_line(terminal, "Say it on your screen.")
    wait_shown(world, terminal, r"Said on the screen\.")
    terminal.wait_quiet(1)
    terminal.send(RELAY_KEY)
    terminal.wait_quiet(0.3)
    terminal.send("/detach\r")
    wait_shown(world, terminal, "Back in the shell")
    world.play(agent, say("Back again."))
    enter(world, terminal, "And now?", r"Back again\.")
    heard = world.requests(agent)[-1]["text"]
    for known in ("What does calc.py do?", "And why?", "Say it on your screen.", "And now?"):
        assert known in heard
    legs = list_legs(world)
    assert [headless for _, _, headless in legs] == [True, True, False, True]
    assert len({native_id for _, native_id, _ in legs}) == 1
    assert legs[0][1]


def test_use_leads_around_the_circle_and_back_into_the_first_conversation(world: World) -> None:
    """Four agents in one session, each told what the others did; the first goes on where it was."""
    for agent in AGENTS:
        world.play(agent, say(f"{agent} was here."))
    order(world, *AGENTS)
    terminal = open_shell(world)
    enter(world, terminal, "Remember the word heliotrope.", r"claude was here\.")
    for agent in AGENTS[1:]:
        terminal.send(f"/use {agent}\r")
        wait_shown(world, terminal, f"→ Your next message goes to {agent}")
        enter(world, terminal, f"Your turn, {agent}.", rf"{agent} was here\.")
        heard = world.requests(agent)[0]["text"]
        assert "heliotrope" in heard
        assert f"Your turn, {agent}." in heard
    world.play("claude", say("claude is back."))
    terminal.send("/use claude\r")
    enter(world, terminal, "Which word was it?", r"claude is back\.")
    heard = world.requests("claude")[-1]["text"]
    assert "heliotrope" in heard
    assert "Your turn, opencode." in heard
    legs = list_legs(world)
    assert [agent for agent, _, _ in legs] == [*AGENTS, "claude"]
    assert legs[0] == legs[-1]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_limit_in_the_middle_of_a_turn_takes_what_waits_to_the_successor(
    world: World, first: str, second: str
) -> None:
    """Two messages are typed ahead while the agent meets its limit: none is lost, none is out of order."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, call(shell(first, "sleep 5"), text="I begin."), LIMITS[first])
    world.play(second, say("I pick it up."), say("That too."), say("And that."))
    terminal = open_shell(world)
    terminal.send("Make add() right.\r")
    wait_shown(world, terminal, r"I begin\.")
    terminal.send("first thought\r")
    terminal.send("second thought\r")
    wait_shown(world, terminal, r"waits: first thought\s+waits: second thought")
    wait_shown(world, terminal, r"(?s)I pick it up.*> first thought.*That too.*> second thought.*And that")
    wait_turn_over(world, terminal)
    heard = [request["text"] for request in world.requests(second)]
    assert "Make add() right." in heard[0]
    assert "first thought" not in heard[0]
    assert "first thought" in heard[1]
    assert "second thought" not in heard[1]
    assert "second thought" in heard[2]
    legs = list_legs(world)
    assert [agent for agent, _, _ in legs] == [first, second, second, second]
    assert len({native_id for _, native_id, _ in legs[1:]}) == 1


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_a_handoff_with_a_document_goes_there_and_is_undone(world: World, first: str, second: str) -> None:
    """`/handoff FOCUS` asks the agent for its own words; `/undo-handoff` gives the conversation back."""
    order(world, first, second)
    world.play(first, say("I keep heliotrope."), say(DOCUMENT))
    world.play(second, say("I look at the parser."))
    terminal = open_shell(world)
    enter(world, terminal, "Remember the word heliotrope.", r"I keep heliotrope\.")
    enter(world, terminal, "/handoff look at the parser", r"I look at the parser\.")
    assert "New session started with handoff context" in terminal.screen
    heard = world.requests(second)[0]["text"]
    assert "Know the word heliotrope." in heard
    assert "look at the parser" in heard
    terminal.send("/undo-handoff\r")
    wait_shown(world, terminal, f"→ Your next message goes to {first}")
    world.play(first, say("It is mine again."))
    enter(world, terminal, "Go on yourself.", r"It is mine again\.")
    legs = list_legs(world)
    assert [agent for agent, _, _ in legs] == [first, second, first]
    assert legs[0] == legs[2]
    assert "Remember the word heliotrope." in world.requests(first)[-1]["text"]


def test_how_much_of_a_plan_is_used_stands_in_the_line_after_a_turn(world: World) -> None:
    """The agent writes it into its transcript, which is read while it works without a screen, too."""
    order(world, "codex")
    world.play("codex", say("It subtracts."))
    terminal = open_shell(world)
    enter(world, terminal, "What does calc.py do?", r"It subtracts\.")
    wait_shown(world, terminal, r"(?m)^codex .*5 h 41 %.* · week 22 %")


def test_a_document_that_takes_too_long_is_called_off(world: World) -> None:
    """Escape while the agent writes: nothing is handed over, and the conversation is still its own."""
    order(world, "claude", "codex")
    world.play("claude", say("I keep heliotrope."), hang(120))
    terminal = open_shell(world)
    enter(world, terminal, "Remember the word heliotrope.", r"I keep heliotrope\.")
    terminal.send("/handoff\r")
    wait_shown(world, terminal, r"the agent writes a handoff document, (?:[2-9]|\d\d+) s; Esc cancels")
    terminal.send("\x1b")
    wait_shown(world, terminal, "Handoff cancelled")
    world.play("claude", say("Still here."))
    enter(world, terminal, "Are you there?", r"Still here\.")
    legs = list_legs(world)
    assert [agent for agent, _, _ in legs] == ["claude", "claude"]
    assert legs[0] == legs[1]
