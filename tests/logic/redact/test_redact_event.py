"""No journal line takes a secret along, whoever's words it quotes."""

import pytest

from agent_relay.domain import event as words
from agent_relay.domain.event import Body
from agent_relay.logic.redact_event import redact_body

KEY = "sk-ant-api03-Zk3jd9sLq2mN8vB4xT6yPq1w"
TERMS = ("deliverables", "criteria", "constraints", "questions")
GONE = "[redacted: anthropic-key]"


@pytest.mark.parametrize(
    ("body", "clean"),
    [
        (words.SessionCreated("S", "/r", "/r", task=KEY), words.SessionCreated("S", "/r", "/r", task=GONE)),
        (
            words.SignalSeen("L", "ada", "limit", "account", "hook", KEY, decides=True, model=KEY),
            words.SignalSeen("L", "ada", "limit", "account", "hook", GONE, decides=True, model=GONE),
        ),
        (
            words.HandoffBegun("H", "L", "ada", "bob", "manual", why=KEY, focus=KEY, skipped=(KEY,)),
            words.HandoffBegun("H", "L", "ada", "bob", "manual", why=GONE, focus=GONE, skipped=(GONE,)),
        ),
        (
            words.HandoffBegun("H", "L", "ada", "bob", "manual", **dict.fromkeys(TERMS, (KEY, "a door"))),
            words.HandoffBegun("H", "L", "ada", "bob", "manual", **dict.fromkeys(TERMS, (GONE, "a door"))),
        ),
        (words.HandoffCancelled("H", "begun", KEY), words.HandoffCancelled("H", "begun", GONE)),
        (
            words.HandoffClosed("H", "failed", KEY, (KEY,)),
            words.HandoffClosed("H", "failed", GONE, (GONE,)),
        ),
        (words.BudgetNoted("L", "b", "warn", KEY), words.BudgetNoted("L", "b", "warn", GONE)),
        (words.SessionRested(KEY, skipped=(KEY,)), words.SessionRested(GONE, skipped=(GONE,))),
        (words.HandoffFailed("H", "spawned", KEY), words.HandoffFailed("H", "spawned", GONE)),
        (words.SessionEnded(KEY), words.SessionEnded(GONE)),
        (words.SessionStopping(KEY), words.SessionStopping(GONE)),
        (words.SessionWoke(KEY), words.SessionWoke(GONE)),
        (words.TurnBegun("ada", KEY), words.TurnBegun("ada", GONE)),
        (words.TurnEnded("L", "failed", KEY), words.TurnEnded("L", "failed", GONE)),
        (words.SessionWaits(KEY), words.SessionWaits(GONE)),
        (words.LegStarted("L", 1, 2, 3), words.LegStarted("L", 1, 2, 3)),
    ],
)
def test_every_quoted_word_is_cleaned(body: Body, clean: Body) -> None:
    """The journal stays for ever and is read by people who ask for help with it."""
    assert redact_body(body, known=frozenset()) == clean


def test_values_known_to_be_secret_go_too() -> None:
    """Passwords look like anything; the user's environment says which they are."""
    body = words.SessionEnded("cannot reach swordfish-77")
    assert redact_body(body, known=frozenset({"swordfish-77"})) == words.SessionEnded(
        "cannot reach [redacted: known-secret]"
    )
