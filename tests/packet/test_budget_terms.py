"""What a handoff is given along fits too: questions and expectations of any length give way in their turn."""

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.packet._cuts import drop_terms, shorten_terms
from agent_relay.packet.budget import estimate_tokens, fit_packet
from tests.agents.test_budget import SOURCE, build, cut_sections, full, show

QUESTIONS = [f"question {number}: {'why ' * 490}" for number in range(20)]
ROLLBACK = {"agent": "alpha", "questions": QUESTIONS, "failed": "H1", "why": "it does not open"}
EXPECTED = {"deliverables": [f"thing {n} {'x ' * 900}" for n in range(20)], "priority": "high"}


def given(**more: object) -> ResumePacket:
    """A packet with a task, a rule, and twenty questions of two thousand characters."""
    rule = {"text": "no nails", "source": SOURCE}
    return build(task="paint", task_source=SOURCE, constraints=[rule], rollback=ROLLBACK, **more)


@pytest.mark.parametrize("tokens", [10_000, 4_000, 2_000, 1_000])
def test_twenty_long_questions_fit_any_budget(tokens: int) -> None:
    """Somebody wrote forty thousand characters of questions; the successor has to be able to read on."""
    assert estimate_tokens(show(given())) > 10_000
    fitted = fit_packet(given(expectations=EXPECTED), tokens=tokens, render=show)
    assert estimate_tokens(show(fitted)) <= tokens
    assert (fitted.task, fitted.constraints[0].text) == ("paint", "no nails")
    assert fitted.rollback is not None
    assert (fitted.rollback["agent"], fitted.rollback["failed"]) == ("alpha", "H1")
    assert fitted.rollback["why"] == "it does not open"
    assert {"expectations", "rollback"} & cut_sections(fitted)


def test_questions_are_shortened_before_the_last_of_them_go() -> None:
    """Twenty questions in short are more than one of them whole."""
    fitted = fit_packet(given(), tokens=5_000, render=show)
    assert fitted.rollback is not None
    asked = fitted.rollback["questions"]
    assert isinstance(asked, list)
    assert len(asked) == 20
    assert all(text.startswith(f"question {number}:") for number, text in enumerate(asked))
    assert [cut.section for cut in fitted.cuts] == ["rollback text"]
    assert sum(len(text) for text in QUESTIONS) - fitted.cuts[0].omitted < sum(map(len, asked))
    fewer = fit_packet(given(), tokens=1_600, render=show)
    assert fewer.rollback is not None
    assert {cut.section for cut in fewer.cuts} == {"rollback text", "rollback questions"}
    assert "questions to answer" in show(fewer)


@pytest.mark.size("test")
def test_the_history_goes_before_the_questions() -> None:
    """The declared order: what was tried can be read again, what is to be answered cannot."""
    packet = full().model_copy(update={"rollback": {"agent": "alpha", "questions": ["why?", "when?"]}})
    fitted = fit_packet(packet, tokens=2_500, render=show)
    assert fitted.rollback == {"agent": "alpha", "questions": ["why?", "when?"]}
    assert fitted.attempts == ()
    least = fit_packet(packet, tokens=1, render=show)
    assert least.rollback is None
    assert [cut.section for cut in least.cuts if cut.section.startswith("rollback")] == ["rollback"]
    assert "note on who takes over if it fails" in show(least)


def test_expectations_are_shortened_before_they_go() -> None:
    """What is expected is worth more in short than not at all."""
    packet = build(task="paint", expectations=EXPECTED)
    fitted = fit_packet(packet, tokens=4_000, render=show)
    assert fitted.expectations is not None
    assert fitted.expectations["priority"] == "high"
    assert "characters of what is expected" in show(fitted)


def test_a_document_of_another_shape_is_left_as_it_is() -> None:
    """A packet of a later version, or one a person edited, may hold anything there."""
    packet = build(rollback={"questions": "one text", "deep": {"a": ["b" * 900]}, "mixed": [1, "c" * 900]})
    assert drop_terms("rollback", "questions", keep=0).most(packet) == 0
    assert drop_terms("rollback", "questions", keep=0).most(build()) == 0
    step = shorten_terms("rollback", to=300)
    assert step.most(packet) == 600
    left = step.cut(packet, 600).rollback
    assert left is not None
    assert (left["questions"], left["deep"]) == ("one text", {"a": ["b" * 900]})
    mixed = left["mixed"]
    assert isinstance(mixed, list)
    assert (mixed[0], "characters left out" in mixed[1]) == (1, True)
    assert step.most(build()) == 0
