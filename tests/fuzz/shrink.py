"""Makes an input that breaks something as small as it stays broken."""

import time
from collections.abc import Callable, Iterator

from tests.fuzz.inputs import Step

_LIMIT_S = 60.0


def shrink(
    steps: list[Step], breaks: Callable[[list[Step]], bool], *, limit_s: float = _LIMIT_S
) -> list[Step]:
    """The smallest input found within the time that still `breaks`; the first step stays."""
    deadline = time.monotonic() + limit_s
    found = steps
    goes_on = True
    while goes_on and time.monotonic() < deadline:
        goes_on = False
        for smaller in _list_smaller(found):
            if time.monotonic() > deadline:
                break
            if breaks(smaller):
                found, goes_on = smaller, True
                break
    return found


def _list_smaller(steps: list[Step]) -> Iterator[list[Step]]:
    """With fewer steps, the largest cuts first, then with shorter texts."""
    for size in _halves(len(steps) - 1):
        for at in range(1, len(steps), size):
            yield [*steps[:at], *steps[at + size :]]
    for number, step in enumerate(steps):
        for place, text in enumerate(step):
            if place and isinstance(text, str):
                for size in _halves(len(text)):
                    for at in range(0, len(text), size):
                        shorter = [*step[:place], text[:at] + text[at + size :], *step[place + 1 :]]
                        yield [*steps[:number], shorter, *steps[number + 1 :]]


def _halves(size: int) -> Iterator[int]:
    while size:
        yield size
        size //= 2
