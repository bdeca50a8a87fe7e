"""Packets of long sessions answer what a successor asks, mislead seldom, and leak nothing."""

from typing import NamedTuple

import pytest

from tests.fidelity.packets import TARGETS, Workshop, build_recall, own_folder
from tests.fidelity.repeats import list_repeated
from tests.fidelity.scoring import Total
from tests.fidelity.script import list_cases, load_case
from tests.support.sizes import sized

pytestmark = pytest.mark.size("every")


class Bars(NamedTuple):
    """What all packets together reach at least (`full`, `kinds`) and at most (all others)."""

    full: float
    misleading: float
    talk: float
    settled_untrue: float
    characters: int
    kinds: dict[str, float]


BARS = Bars(
    full=0.95,
    misleading=0.2,
    talk=0.12,
    settled_untrue=0.10,
    characters=8_000,
    kinds={"constraint": 1.0, "correction": 0.96, "decision": 0.95, "gotcha": 0.80, "rejected": 0.90},
)
"""With ordinary talk. To be raised with whatever makes packets better."""
BARS_WITHOUT_TALK = Bars(
    full=0.97,
    misleading=0.2,
    talk=0.0,
    settled_untrue=0.10,
    characters=8_000,
    kinds={"constraint": 0.98, "correction": 0.96, "decision": 0.95, "gotcha": 0.85, "rejected": 0.93},
)
"""The same sessions without it."""

WITH_RECALL = 0.98
"""The share of all questions that is answered by the packet, or by what is looked up with the question."""

THREE = ["cold-chain-probe", "hl7-ordenacion", "kakeibo-launch"]
PARTS = 4
"""Several workers share the sessions."""


@pytest.mark.size("every")
@pytest.mark.parametrize("part", sized(range(PARTS), [PARTS - 1]))
def test_packets_of_long_sessions_leak_nothing_stay_short_and_say_nothing_twice(
    workshop: Workshop, part: int
) -> None:
    """A secret in a shared file has to be replaced; nobody reads a long packet, or the same thing twice."""
    wrong: list[tuple[object, ...]] = []
    for name in list_cases()[part::PARTS]:
        for target in TARGETS[load_case(name).agent]:
            text, score = workshop.score(name, target)
            twice = list(list_repeated(text))
            if score.leaked or twice or len(text) > BARS.characters or not score.full:
                wrong.append((name, target, score.leaked, twice, len(text), score.full))
    assert wrong == []


@pytest.mark.size("test")
def test_packets_of_three_sessions_answer_what_a_successor_asks(workshop: Workshop) -> None:
    """Of three agents; all sessions are judged together where there is time for them."""
    total = workshop.total(0, THREE)
    assert (total.leaks, total.recall >= BARS.full, total.misleading <= BARS.misleading) == (0, True, True)


def test_packets_answer_what_a_successor_asks(workshop: Workshop) -> None:
    """Rules, choices, false leads, the open step, the last error: whoever goes on needs them.

    What the packet has no room for is one `agent-relay recall` away, with the question as its query.
    """
    for place in (0, 1):
        _check(workshop.total(place), BARS)
    assert workshop.total_with_recall(0, build_recall()).recall >= WITH_RECALL


def test_packets_answer_it_without_the_talk_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is lost here is not lost for lack of space."""
    with own_folder() as folder:
        monkeypatch.setenv("AGENT_RELAY_HOME", f"{folder}/home")
        _check(Workshop(folder, talk=False).total(0), BARS_WITHOUT_TALK)


def _check(total: Total, bars: Bars) -> None:
    shares = {kind: full / asked for kind, (full, asked) in total.count_kinds().items()}
    assert total.leaks == 0
    assert total.recall >= bars.full
    assert total.misleading <= bars.misleading
    assert total.talk <= bars.talk
    assert total.settled_untrue <= bars.settled_untrue
    assert total.characters <= bars.characters
    assert {kind: shares[kind] for kind, least in bars.kinds.items() if shares[kind] < least} == {}
