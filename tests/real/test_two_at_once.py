from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import deliver, quit_politely, start, wait_ready
from tests.support.real_terminal import Terminal
from tests.support.real_work import (
    read_all_events,
    type_line,
    wait_heard,
    wait_prompt,
    wait_taken_over,
)

TASK = "Write a page about heliotropes."
GOES_ON = "I pick up where it stopped."


def open_two(world: World) -> tuple[Terminal, Terminal]:
    """Two terminals in which `agent-relay codex` was started at the same moment."""
    world.play("codex", say(GOES_ON))
    return world.open(world.relay("codex")), world.open(world.relay("codex"))


def check_one_successor(world: World, *terminals: Terminal) -> None:
    """Codex was started and asked once, and every terminal shows it."""
    assert TASK in wait_heard(world, terminals[0], "codex")
    for terminal in terminals:
        terminal.wait_for(GOES_ON)
    session = wait_taken_over(world, terminals[0], "codex")
    assert [leg.agent for leg in session.legs] == ["claude", "codex"]
    begun = [event for event in read_all_events(world) if event.body.name == "handoff.begun"]
    assert len(begun) == 1
    assert len(world.requests("codex")) == 1
    assert all(terminal.is_alive() for terminal in terminals)


def test_two_terminals_that_go_on_with_a_plain_session_share_one_successor(world: World) -> None:
    """Both are asked, both say yes, and no daemon is running yet: the work must still be done once."""
    real_seeds.free_hands(world.home)
    world.play("claude", say("The first answer."))
    leg = start(world, "claude")
    wait_ready(leg)
    deliver(leg, TASK)
    leg.terminal.wait_for("The first answer")
    leg.terminal.wait_quiet()
    quit_politely(leg, "ready")
    both = open_two(world)
    for terminal in both:
        terminal.wait_for("Go on with it")
    for terminal in both:
        terminal.send("y\r")
    check_one_successor(world, *both)


def test_two_terminals_that_take_a_live_session_over_share_one_successor(world: World) -> None:
    """The terminal in which the first agent ran goes on with the same successor."""
    real_seeds.free_hands(world.home)
    world.play("claude", say("The first answer."))
    first = world.open(world.relay("claude"))
    wait_prompt(first, "claude")
    type_line(first, TASK)
    first.wait_for("The first answer")
    first.wait_quiet()
    check_one_successor(world, *open_two(world), first)
