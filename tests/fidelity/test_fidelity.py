"""Packets of long sessions answer what a successor asks, mislead seldom, and leak nothing."""

from typing import NamedTuple

import pytest

from tests.fidelity.packets import TARGETS, Workshop, build_recall, own_folder
from tests.fidelity.repeats import list_repeated
from tests.fidelity.scoring import Total
from tests.fidelity.script import list_cases, load_case

pytestmark = pytest.mark.size("test")


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

_PACKETS = [(name, target) for name in list_cases() for target in TARGETS[load_case(name).agent]]


@pytest.mark.parametrize(("name", "target"), _PACKETS)
def test_a_packet_of_a_long_session_leaks_nothing_and_stays_short(
    workshop: Workshop, name: str, target: str
) -> None:
    """A secret in a shared file has to be replaced, and nobody reads a long packet."""
    text, score = workshop.score(name, target)
    assert score.leaked == ()
    assert len(text) <= BARS.characters
    assert score.full > 0


def test_packet_and_recall_together_answer_nearly_everything(workshop: Workshop) -> None:
    """What the packet has no room for is one `agent-relay recall` away, with the question as its query."""
    total = workshop.total_with_recall(0, build_recall())
    assert total.recall >= WITH_RECALL


@pytest.mark.parametrize(("name", "target"), _PACKETS)
def test_a_packet_says_nothing_twice(workshop: Workshop, name: str, target: str) -> None:
    """A repetition takes the space of something else that is then missing."""
    text, _ = workshop.score(name, target)
    assert list(list_repeated(text)) == []


@pytest.mark.parametrize("place", [0, 1])
def test_packets_answer_what_a_successor_asks(workshop: Workshop, place: int) -> None:
    """Rules, choices, false leads, the open step, the last error: whoever goes on needs them."""
    _check(workshop.total(place), BARS)


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
