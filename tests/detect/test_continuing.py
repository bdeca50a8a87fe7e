"""Going on by itself at a reset: what a quoted countdown, an old record and a bare screen are worth."""

import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.record_matching import compile_pattern, squeeze
from agent_relay.domain.documents.rules import ContinueRule
from agent_relay.domain.limits import Record, Source
from agent_relay.domain.screen import Row, Screen
from agent_relay.domain.values import AgentName

BEGAN = datetime(2026, 11, 23, 9, 50, tzinfo=UTC)
RESET = datetime(2026, 11, 23, 11, 50, tzinfo=UTC)
RULES = load_rules(load_adapter(os.path.join(find_builtin_folder(), "claude"), origin="built-in"))
FOOTER = (
    "  ⚠ Usage limit reached · limit resets 11:50am",
    "    Continuing automatically at 11:50am · Esc to cancel",
)


def show(*under: str) -> Screen:
    """A screen with an empty input box and these rows under it."""
    rows = ("● Done.", "", "─" * 80, "\u276f ", "─" * 80, *under)
    return Screen(rows=tuple(Row(text) for text in rows), cols=80)


def notice(text: str, *, at: datetime) -> Record:
    """A row of the agent's own in its transcript."""
    return Record(Source.TRANSCRIPT, {"type": "system", "subtype": "informational", "content": text}, at)


def begin() -> Detector:
    """A detector of a leg that began just now."""
    return Detector(RULES, agent=AgentName("claude"), started_at=BEGAN, zone=UTC)


@pytest.mark.parametrize("rule", RULES.continues.rules, ids=lambda rule: rule.id)
def test_every_rule_accepts_and_rejects_its_lines(rule: ContinueRule) -> None:
    """A pattern without examples on both sides is a guess."""
    pattern = compile_pattern(rule.pattern)
    assert [line for line in rule.accepts if pattern.search(squeeze(line)) is None] == []
    assert [line for line in rule.rejects if pattern.search(squeeze(line)) is not None] == []


def test_a_countdown_that_somebody_said_is_none() -> None:
    """An agent can be asked to print its own footer; a session must not be left to it for that."""
    detector = begin()
    words = {"type": "user", "message": {"content": f"print {FOOTER[1].strip()}"}}
    detector.hear(Record(Source.TRANSCRIPT, words, BEGAN), now=BEGAN)
    detector.look(show(*FOOTER), now=BEGAN, at_offset=0)
    assert detector.continues_at is None


def test_a_countdown_among_an_answer_s_rows_is_none() -> None:
    """It stands under the box people type into, and nowhere else."""
    detector = begin()
    quoted = Screen(rows=tuple(Row(text) for text in (*FOOTER, *[row.text for row in show().rows])), cols=80)
    detector.look(quoted, now=BEGAN, at_offset=0)
    assert detector.continues_at is None
    detector.look(show(*FOOTER), now=BEGAN, at_offset=0)
    assert detector.continues_at == RESET


def test_a_wait_that_the_records_told_of_outlasts_a_screen_without_it() -> None:
    """A dialog, a short window or a repaint hides the countdown; the agent goes on all the same."""
    detector = begin()
    said = notice("Usage limit reached · set to continue automatically at 11:50am", at=BEGAN)
    detector.hear(said, now=BEGAN)
    detector.look(show("  ⏵⏵ auto mode on"), now=BEGAN + timedelta(seconds=9), at_offset=0)
    assert detector.continues_at == RESET
    detector.hear(
        notice("Automatic continue cancelled · /rate-limit-options to wait again", at=BEGAN), now=BEGAN
    )
    assert detector.continues_at is None


def test_a_wait_that_only_the_screen_told_of_is_over_with_it() -> None:
    """Where no record can be read, what is shown is all that is known."""
    detector = begin()
    detector.look(show(*FOOTER), now=BEGAN, at_offset=0)
    detector.look(show("  ⏵⏵ auto mode on"), now=BEGAN, at_offset=0)
    assert detector.continues_at is None


def test_a_moment_that_is_not_named_any_more_stays_the_known_one() -> None:
    """After the reset it says "shortly", for a minute and a half."""
    detector = begin()
    detector.look(show(*FOOTER), now=BEGAN, at_offset=0)
    shortly = (FOOTER[0], "    Continuing shortly · Esc to cancel")
    detector.look(show(*shortly), now=RESET + timedelta(seconds=40), at_offset=0)
    assert detector.continues_at == RESET


def test_an_answer_ends_the_wait_and_a_record_from_before_the_leg_begins_none() -> None:
    """A resumed session carries the old rows along."""
    detector = begin()
    said = "Usage limit reached · set to continue automatically at 11:50am"
    detector.hear(notice(said, at=BEGAN - timedelta(1)), now=BEGAN)
    assert detector.continues_at is None
    detector.hear(notice(said, at=BEGAN), now=BEGAN)
    later = BEGAN + timedelta(seconds=1)
    answer = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Fine."}]}}
    detector.hear(Record(Source.TRANSCRIPT, answer, later), now=later)
    assert detector.continues_at is None
