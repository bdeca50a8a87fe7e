"""What a person in front of a real failover sees: a bar, from the decision to the successor's first work."""

from itertools import permutations

import pytest

from agent_relay.domain.event import Event
from tests.support import real_seeds
from tests.support.provider.steps import say
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_terminal import Terminal
from tests.support.real_work import LIMITS, find_journals, order, read_all_events, type_line, wait_prompt

pytestmark = pytest.mark.real

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
GOES_ON = "I pick up where it stopped: add() must return a + b."
PAIRS = list(permutations(AGENTS, 2))
SIZES = [(24, 80), (40, 120)]


def find_event(world: World, name: str) -> Event | None:
    """The first line of that name in the journal of the project's one session."""
    found = (
        [event for event in read_all_events(world) if event.body.name == name] if find_journals(world) else []
    )
    return found[0] if found else None


def sample(world: World, terminal: Terminal, first: str) -> list[str]:
    """The lowest row at every look from the bar's first appearance on, until the successor works."""
    rows: list[str] = []

    def look() -> bool:
        row = terminal.rows[-1]
        if rows or row.lstrip().startswith(("relay:", f"{first} →")):
            # Looked at before the journal: a bar taken away meanwhile was taken away after this look.
            is_over = find_event(world, "handoff.confirmed") is not None
            if not is_over:
                rows.append(row)
            return is_over
        assert find_event(world, "handoff.stopped") is None, "the predecessor ended before the bar was shown"
        return False

    terminal.wait_until(look, "the successor to work")
    return rows


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_bar_stands_from_the_decision_to_the_first_work(world: World, first: str, second: str) -> None:
    """Whoever looks at the screen at any moment of a switch reads who takes over and what is awaited."""
    size = SIZES[PAIRS.index((first, second)) % 2]
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, LIMITS[first])
    world.play(second, say(GOES_ON))
    terminal = world.open(world.relay(first), size=size)
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    rows = sample(world, terminal, first)
    unreadable = [row for row in rows if f"{first} → {second} ·" not in row]
    assert (unreadable, len(rows) > 5) == ([], True), f"{len(unreadable)} of {len(rows)}"
    terminal.wait_for(GOES_ON[:28])
    terminal.wait_until(lambda: f"{first} → {second} ·" not in terminal.rows[-1], "the bar to be gone")
