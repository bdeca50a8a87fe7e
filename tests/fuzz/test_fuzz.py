"""Terminals, agents and peers say anything: inputs that broke something once, and some nobody has seen."""

import pytest

from tests.fuzz.holder import TARGETS, fuzz, list_corpus, run_one

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
