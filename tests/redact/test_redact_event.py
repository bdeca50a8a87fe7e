"""No journal line takes a secret along, whoever's words it quotes."""

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.session import Body, PromptSeen
from agent_relay.redact.packet import redact_body

KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"
TERMS = ("deliverables", "criteria", "checks", "proposed_checks", "constraints", "questions")
RESULT = ("deliverables", "completed", "incomplete", "questions")
GONE = "[redacted: anthropic-key]"


CLEANED: list[tuple[Body, Body]] = [
    (words.SessionCreated("S", "/r", "/r", task=KEY), words.SessionCreated("S", "/r", "/r", task=GONE)),
    (
        words.SignalSeen("L", "ada", "limit", "account", "hook", KEY, decides=True, model=KEY),
        words.SignalSeen("L", "ada", "limit", "account", "hook", GONE, decides=True, model=GONE),
    ),
    (
        work.HandoffBegun("H", "L", "ada", "bob", "manual", why=KEY, focus=KEY, skipped=(KEY,)),
        work.HandoffBegun("H", "L", "ada", "bob", "manual", why=GONE, focus=GONE, skipped=(GONE,)),
    ),
    (
        work.HandoffBegun("H", "L", "ada", "bob", "manual", **dict.fromkeys(TERMS, (KEY, "a door"))),
        work.HandoffBegun("H", "L", "ada", "bob", "manual", **dict.fromkeys(TERMS, (GONE, "a door"))),
    ),
    (work.HandoffCancelled("H", "begun", KEY), work.HandoffCancelled("H", "begun", GONE)),
    (
        work.HandoffClosed("H", "failed", KEY, (KEY,)),
        work.HandoffClosed("H", "failed", GONE, (GONE,)),
    ),
    (
        work.HandoffClosed("H", "failed", suggested_next=KEY, **dict.fromkeys(RESULT, (KEY,))),
        work.HandoffClosed("H", "failed", suggested_next=GONE, **dict.fromkeys(RESULT, (GONE,))),
    ),
    (
        work.CriterionChecked("H", f"use {KEY}", "met", KEY, "relay", f"it printed {KEY}"),
        work.CriterionChecked("H", f"use {GONE}", "met", GONE, "relay", f"it printed {GONE}"),
    ),
    (
        work.BlockerNamed("H", "access", f"no {KEY}", KEY),
        work.BlockerNamed("H", "access", f"no {GONE}", GONE),
    ),
    (
        work.HandoffRequested("H", "L", "bob", KEY, KEY, KEY, files=(KEY,)),
        work.HandoffRequested("H", "L", "bob", GONE, GONE, GONE, files=(GONE,)),
    ),
    (work.HandoffWithdrawn("H", KEY), work.HandoffWithdrawn("H", GONE)),
    (work.HandoffAccepted("H", "L", KEY), work.HandoffAccepted("H", "L", GONE)),
    (work.AgentNoted("L", KEY, KEY), work.AgentNoted("L", GONE, GONE)),
    (work.BudgetNoted("L", "b", "warn", KEY), work.BudgetNoted("L", "b", "warn", GONE)),
    (words.SessionRested(KEY, skipped=(KEY,)), words.SessionRested(GONE, skipped=(GONE,))),
    (work.HandoffFailed("H", "spawned", KEY), work.HandoffFailed("H", "spawned", GONE)),
    (words.SessionEnded(KEY), words.SessionEnded(GONE)),
    (words.SessionStopping(KEY), words.SessionStopping(GONE)),
    (words.SessionWoke(KEY), words.SessionWoke(GONE)),
    (words.PromptSeen("L", f"use {KEY}", "T"), words.PromptSeen("L", f"use {GONE}", "T")),
    (work.TurnBegun("ada", KEY), work.TurnBegun("ada", GONE)),
    (work.TurnEnded("L", "failed", KEY), work.TurnEnded("L", "failed", GONE)),
    (work.SessionWaits(KEY), work.SessionWaits(GONE)),
    (words.LegStarted("L", 1, 2, 3), words.LegStarted("L", 1, 2, 3)),
]
"""Events with a key wherever they quote somebody, and the same without it."""


def test_every_quoted_word_is_cleaned() -> None:
    """The journal stays for ever and is read by people who ask for help with it."""
    assert [(body, redact_body(body, known=frozenset())) for body, _ in CLEANED] == CLEANED


def test_values_known_to_be_secret_go_too() -> None:
    """Passwords look like anything; the user's environment says which they are."""
    body = words.SessionEnded("cannot reach swordfish-77")
    assert redact_body(body, known=frozenset({"swordfish-77"})) == words.SessionEnded(
        "cannot reach [redacted: known-secret]"
    )


def test_of_a_long_output_the_end_is_kept_and_no_half_secret() -> None:
    """What a command printed is cut after it was searched."""
    found = redact_body(
        work.CriterionChecked("H", "make", "met", output=f"{KEY} " * 100 + "x" * 1990), known=frozenset()
    )
    assert isinstance(found, work.CriterionChecked)
    assert (len(found.output), "sk-ant" in found.output) == (2000, False)


def test_half_a_secret_where_a_prompt_was_cut_is_not_journalled() -> None:
    """Of a very long prompt only a part is searched, and that may end in the middle of a key."""
    told = words.PromptSeen("L", f"{KEY} " * 500, "T")
    found = redact_body(told, known=frozenset())
    assert isinstance(found, words.PromptSeen)
    assert "sk-ant" not in found.text
    assert found.text.startswith(f"{GONE} {GONE} ")
    assert found.left_out > 0


@pytest.mark.size("test")
def test_half_a_secret_where_an_answer_was_cut_is_not_journalled() -> None:
    """A chat keeps the end of an agent's words, and that may begin in the middle of a key."""
    for before in range(len(KEY)):
        told = work.TurnEnded("L", "done", said=f"{KEY} {'x' * (47_999 - before)}")
        found = redact_body(told, known=frozenset())
        assert isinstance(found, work.TurnEnded)
        assert KEY[-before:] not in found.said or not before


def test_a_very_long_answer_is_journalled_to_its_end_and_what_is_missing_is_counted() -> None:
    """The next agent answers what was said last."""
    told = work.TurnEnded("L", "done", said="w " * 500_000 + f"{KEY} is it")
    found = redact_body(told, known=frozenset())
    assert isinstance(found, work.TurnEnded)
    assert found.said.startswith("[952,043 characters left out]\n w w ")
    assert found.said.endswith(f" w w {GONE} is it")


def test_a_long_prompt_is_cut_where_it_holds_no_secret_any_more() -> None:
    """Half a key at the cut would be known to no rule."""
    told = words.PromptSeen("L", "x" * 7990 + f" {KEY} and on", "T")
    found = redact_body(told, known=frozenset())
    assert found == words.PromptSeen("L", "x" * 7990 + " [redacted", "T", left_out=23)


@pytest.mark.parametrize("between", ["\x1b[1m", "\u200b", "\x00", "\x1b]0;t\x07"])
@pytest.mark.parametrize("secret", ["zebra-Lamp-77", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"])
def test_a_secret_is_found_where_what_nobody_sees_parts_it(secret: str, between: str) -> None:
    """Whoever shows the journal's words leaves such characters out: the secret would stand there whole."""
    text = f"log in with {secret[:7]}{between}{secret[7:]}, please"
    seen = PromptSeen("L", text, "2026-11-20T18:20:00+00:00")
    body = redact_body(seen, known=frozenset({"zebra-Lamp-77"}))
    assert isinstance(body, PromptSeen)
    assert secret[7:] not in body.text
    assert "[redacted: " in body.text


def test_colours_that_part_no_secret_stay_in_the_journal() -> None:
    """A prompt may be about them."""
    text = "why is \x1b[31mthis\x1b[0m red?"
    seen = PromptSeen("L", text, "2026-11-20T18:20:00+00:00")
    assert redact_body(seen, known=frozenset()) == seen
