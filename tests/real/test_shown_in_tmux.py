"""What a person sees of a real switch inside tmux, and that all agents rest, there and in a bare terminal."""

from collections.abc import Callable
from itertools import cycle

import pytest

from tests.support import real_seeds
from tests.support.real import World
from tests.support.real_launch import AGENTS, PROMPTS
from tests.support.real_switch import (
    GOES_ON,
    SIZES,
    TASK,
    name_bar,
    name_value,
    prepare_switch,
    watch_bar,
)
from tests.support.real_work import LIMITS, order, type_line, wait_prompt
from tests.support.tmux_pane import TmuxPane

# A switch to the screen below and one to the alternate screen.
PLAYED = [(("claude", "codex"), (24, 80)), (("codex", "opencode"), (40, 120))]
RESTS = list(zip(AGENTS, cycle(SIZES), strict=False))
LOOKS = 30
RESTING = ("Every agent rests. First reset: ", "l leave")


def give_task(pane: TmuxPane, agent: str) -> None:
    """Type the task once the agent waits for it."""
    pane.wait_for(PROMPTS[agent])
    pane.wait_still()
    pane.send(TASK)
    pane.wait_until(lambda: TASK[-12:] in "".join(pane.screen.split("\n")), "the task to stand there")
    pane.wait_still()
    pane.press("Enter")


@pytest.mark.parametrize(("pair", "size"), PLAYED, ids=name_value)
def test_the_bar_stands_in_a_pane_of_tmux(
    world: World,
    pair: tuple[str, str],
    size: tuple[int, int],
    record_property: Callable[[str, object], None],
) -> None:
    """Codex writes below what stands there, opencode has the alternate screen; tmux paints both anew."""
    first, second = pair
    prepare_switch(world, first, second)
    with TmuxPane(world, world.relay(first).argv, size=size) as pane:
        give_task(pane, first)
        looks = watch_bar(world, pane, first, second)
        for name, value in looks.describe(world).items():
            record_property(name, value)
        assert (looks.unreadable, len(looks.rows) > 5) == ([], True), f"of {len(looks.rows)}"
        pane.wait_for(GOES_ON[:28])
        pane.wait_until(lambda: name_bar(first, second) not in pane.rows[-1], "the bar to be gone")


@pytest.mark.parametrize(("agent", "size"), RESTS, ids=name_value)
def test_that_all_agents_rest_is_readable_at_every_look_in_tmux(
    world: World, agent: str, size: tuple[int, int]
) -> None:
    """It may stand there for hours, in a session that is attached to from elsewhere."""
    real_seeds.free_hands(world.home)
    order(world, agent, only=True)
    world.play(agent, LIMITS[agent])
    with TmuxPane(world, world.relay(agent).argv, size=size) as pane:
        give_task(pane, agent)
        pane.wait_for(RESTING[1])
        screens = [pane.screen for _ in range(LOOKS)]
    assert [screen for screen in screens if not all(words in screen for words in RESTING)] == []


@pytest.mark.parametrize(("agent", "size"), [("codex", (40, 120))], ids=name_value)
def test_that_all_agents_rest_is_readable_at_every_look(
    world: World, agent: str, size: tuple[int, int]
) -> None:
    """The countdown is painted every second, and no look falls between two paintings of it."""
    real_seeds.free_hands(world.home)
    order(world, agent, only=True)
    world.play(agent, LIMITS[agent])
    terminal = world.open(world.relay(agent), size=size)
    wait_prompt(terminal, agent)
    type_line(terminal, TASK)
    terminal.wait_for(RESTING[1])
    screens: list[str] = []

    def look() -> bool:
        screens.append(terminal.screen)
        return len({line for screen in screens for line in screen.split("\n") if RESTING[0] in line}) > 3

    terminal.wait_until(look, "three seconds of the countdown")
    assert [screen for screen in screens if not all(words in screen for words in RESTING)] == []
    assert len(screens) > 5
