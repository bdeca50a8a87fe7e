"""A packet's score counts what was planted, however the packet words or wraps it."""

import pytest

from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.packet.freshness import PlantedFact, PlantedSecret, Planting, score_text

_TOKEN = PlantedSecret(kind="token", text=("abcdef", "ghijklmnop"))


def _plant(*facts: PlantedFact, secret: tuple[PlantedSecret, ...] = (_TOKEN,)) -> Planting:
    return Planting(agent="a", fact=facts, secret=secret)


def test_a_fact_is_found_through_quotation_marks_and_broken_lines() -> None:
    """A packet may quote and wrap; a score that minded would measure layout."""
    fact = PlantedFact(kind="prompt", says=("Don't touch the API, ever",))
    assert score_text("> don\u2019t touch\n> the  API, ever.", _plant(fact)).is_perfect


def test_every_part_of_a_fact_has_to_be_there() -> None:
    """A decision without its reason is half a decision."""
    fact = PlantedFact(kind="decision", says=("use a lock", "the queue loses order"))
    score = score_text("We use a lock.", _plant(fact))
    assert (score.missing, score.found, score.planted) == ((fact,), {"decision": 0}, {"decision": 1})
    assert not score.is_perfect


def test_a_step_counts_with_its_status_only() -> None:
    """A finished step that looks open is done again."""
    fact = PlantedFact(kind="todo_done", says=("Write it",), beside=("[x]", "done"))
    assert not score_text("- [ ] Write it\n- [x] Read it", _plant(fact)).is_perfect
    assert score_text("- [X] write it", _plant(fact)).is_perfect


def test_kinds_are_counted_whole() -> None:
    """Two open steps are one kind: it is there when both are."""
    facts = [PlantedFact(kind="todo_open", says=(text,)) for text in ("one", "two")]
    facts.append(PlantedFact(kind="error", says=("three",)))
    score = score_text("one and three", _plant(*facts))
    assert (score.kinds, score.found) == (1, {"todo_open": 1, "error": 1})
    assert score.characters == 13


def test_twelve_characters_of_a_secret_are_a_leak() -> None:
    """Half a key in a shared file has to be replaced like a whole one."""
    fact = PlantedFact(kind="error", says=("x",))
    assert score_text("x cdefghijklmn", _plant(fact)).leaked == ("token",)
    assert score_text("x abcdefghijk", _plant(fact)).leaked == ()
    short = PlantedSecret(kind="pin", text="12345678")
    assert score_text("x 12345678", _plant(fact, secret=(short,))).leaked == ("pin",)


def test_a_file_that_plants_nothing_is_refused() -> None:
    """It would call every packet perfect."""
    with pytest.raises(MistakeError):
        Planting.parse({"agent": "a", "fact": []})
    with pytest.raises(MistakeError):
        Planting.parse({"fact": [{"kind": "decision", "says": ["x"], "sais": ["y"]}]})
