"""Terminals, agents and peers say anything: inputs that broke something once, and some nobody has seen."""

import pytest

from tests.fuzz.holder import TARGETS, fuzz, list_corpus, run_one
from tests.fuzz.inputs import make_rng, parse, render
from tests.fuzz.shrink import shrink
from tests.fuzz.typed import Typed

# So many take a second or two each; `python -m tests.fuzz.holder --minutes 60` runs as many as it can.
COUNTS = {"typed": 600, "shown": 200, "asked": 100, "requested": 60}


@pytest.mark.parametrize("name", TARGETS)
def test_what_broke_something_once_breaks_nothing_any_more(name: str) -> None:
    """Each of these ended an agent, a daemon or a terminal once."""
    target = TARGETS[name]()
    try:
        broken = [(file, error) for file, steps in list_corpus(name) if (error := run_one(target, steps))]
    finally:
        target.close()
    assert broken == []


@pytest.mark.size("test")
@pytest.mark.parametrize("name", TARGETS)
def test_some_hundred_inputs_break_nothing(name: str) -> None:
    """The same ones every time: whoever changes something sees at once what it broke."""
    count, findings = fuzz(
        TARGETS[name], seed=1, until=lambda done: done >= COUNTS[name], at=lambda _: None, first=0
    )
    assert findings == []
    assert count == COUNTS[name]


@pytest.mark.parametrize("name", TARGETS)
def test_an_input_is_the_same_for_the_same_seed(name: str) -> None:
    """A finding that cannot be had again cannot be mended."""
    target = TARGETS[name]()
    try:
        one, again = (target.make(make_rng(name, 3, 5)) for _ in range(2))
    finally:
        target.close()
    assert one == again
    assert parse(render(one)) == one


class _Brittle(Typed):
    def run(self, steps: list[list[object]]) -> None:
        super().run(steps)
        if "\x1b[200~" in "".join(str(step[1]) for step in steps if step[0] == "read"):
            raise ValueError


def test_a_planted_mistake_is_found_and_made_small() -> None:
    """A fuzzer that finds nothing may be one that cannot."""
    _count, findings = fuzz(_Brittle, seed=1, until=lambda done: done >= 200, at=lambda _: None, first=0)
    assert findings
    small = shrink(findings[0][1], lambda steps: run_one(_Brittle(), steps) is not None, limit_s=20)
    assert small[1:] == [["read", "\x1b[200~"]]
