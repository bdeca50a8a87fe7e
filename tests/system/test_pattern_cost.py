"""Which expressions count as slow: those that are, not those that were held up once."""

import re
import time

from agent_relay.system.pattern_cost import find_slow_probe

HELD_UP_S = 0.1


def compute(seconds: float) -> None:
    """Use that much processor time."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        continue


def test_an_expression_that_was_held_up_once_is_not_slow() -> None:
    """Python may look for garbage in the middle of it, and a user's rule would be refused for that."""
    held_up: set[str] = set()

    def ask(text: str) -> object:
        if not held_up:
            held_up.add(text)
            compute(HELD_UP_S)
        return re.search("b+", text)

    assert find_slow_probe("b+", ask) == ""
    assert held_up


def test_an_expression_that_takes_long_each_time_is_slow() -> None:
    """Nothing can interrupt it."""
    assert find_slow_probe("b+", lambda _text: compute(HELD_UP_S))
