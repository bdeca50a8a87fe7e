"""What a person in front of a real failover sees: a bar, from the decision to the successor's first work."""

from collections.abc import Callable
from itertools import cycle

import pytest

from tests.support.real import World
from tests.support.real_switch import (
    GOES_ON,
    PAIRS,
    SIZES,
    TASK,
    name_bar,
    name_value,
    prepare_switch,
    watch_bar,
)
from tests.support.real_work import type_line, wait_prompt

# Every pair in one size, the sizes in turns.
PLAYED = list(zip(PAIRS, cycle(SIZES), strict=False))


@pytest.mark.parametrize(("pair", "size"), PLAYED, ids=name_value)
def test_the_bar_stands_from_the_decision_to_the_first_work(
    world: World,
    pair: tuple[str, str],
    size: tuple[int, int],
    record_property: Callable[[str, object], None],
) -> None:
    """Whoever looks at the screen at any moment of a switch reads who takes over and what is awaited."""
    first, second = pair
    prepare_switch(world, first, second)
    terminal = world.open(world.relay(first), size=size)
    wait_prompt(terminal, first)
    type_line(terminal, TASK)
    looks = watch_bar(world, terminal, first, second)
    for name, value in looks.describe(world).items():
        record_property(name, value)
    assert (looks.unreadable, len(looks.rows) > 5) == ([], True), f"of {len(looks.rows)}"
    terminal.wait_for(GOES_ON[:28])
    terminal.wait_until(lambda: name_bar(first, second) not in terminal.rows[-1], "the bar to be gone")
