"""What a person sees of a real switch inside tmux, and that all agents rest, there and in a bare terminal."""

import pytest

from tests.real.test_bar_shown import GOES_ON, TASK, find_event
from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import PROMPTS
from tests.support.real_work import LIMITS, order, type_line, wait_prompt
from tests.support.tmux_pane import TmuxPane

pytestmark = pytest.mark.real

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


def sample(world: World, pane: TmuxPane, first: str) -> list[str]:
    """The lowest row at every look from the bar's first appearance on, until the successor works."""
    rows: list[str] = []

    def look() -> bool:
        row = pane.rows[-1]
        if rows or row.lstrip().startswith(("relay:", f"{first} →")):
            # Looked at before the journal: a bar taken away meanwhile was taken away after this look.
            is_over = find_event(world, "handoff.confirmed") is not None
            if not is_over:
                rows.append(row)
            return is_over
        assert find_event(world, "handoff.stopped") is None, "the predecessor ended before the bar was shown"
        return False

    pane.wait_until(look, "the successor to work")
    return rows


@pytest.mark.parametrize(
    ("first", "second", "size"), [("claude", "codex", (24, 80)), ("codex", "opencode", (40, 120))]
)
def test_the_bar_stands_in_a_pane_of_tmux(
    world: World, first: str, second: str, size: tuple[int, int]
) -> None:
    """Codex writes below what stands there, opencode has the alternate screen; tmux paints both anew."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, LIMITS[first])
    world.play(second, say(GOES_ON))
    with TmuxPane(world, world.relay(first), size=size) as pane:
        give_task(pane, first)
        rows = sample(world, pane, first)
        unreadable = [row for row in rows if f"{first} → {second} ·" not in row]
        assert (unreadable, len(rows) > 5) == ([], True), f"{len(unreadable)} of {len(rows)}"
        pane.wait_for(GOES_ON[:28])
        pane.wait_until(lambda: f"{first} → {second} ·" not in pane.rows[-1], "the bar to be gone")


def test_that_all_agents_rest_is_readable_at_every_look_in_tmux(world: World) -> None:
    """It may stand there for hours, in a session that is attached to from elsewhere."""
    real_seeds.free_hands(world.home)
    order(world, "claude", only=True)
    world.play("claude", LIMITS["claude"])
    with TmuxPane(world, world.relay("claude"), size=(24, 80)) as pane:
        give_task(pane, "claude")
        pane.wait_for(RESTING[1])
        screens = [pane.screen for _ in range(LOOKS)]
    assert [screen for screen in screens if not all(words in screen for words in RESTING)] == []


def test_that_all_agents_rest_is_readable_at_every_look(world: World) -> None:
    """The countdown is painted every second, and no look falls between two paintings of it."""
    real_seeds.free_hands(world.home)
    order(world, "codex", only=True)
    world.play("codex", LIMITS["codex"])
    terminal = world.open(world.relay("codex"))
    wait_prompt(terminal, "codex")
    type_line(terminal, TASK)
    terminal.wait_for(RESTING[1])
    screens: list[str] = []

    def look() -> bool:
        screens.append(terminal.screen)
        return len({line for screen in screens for line in screen.split("\n") if RESTING[0] in line}) > 3

    terminal.wait_until(look, "three seconds of the countdown")
    assert [screen for screen in screens if not all(words in screen for words in RESTING)] == []
    assert len(screens) > 5
