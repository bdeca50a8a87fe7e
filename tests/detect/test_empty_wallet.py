"""An account whose paid credits are used up shows the quota dialog with an offer to buy some."""

import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.limits import Record, Scope, Source
from agent_relay.domain.screen import Row, Screen
from agent_relay.domain.values import AgentName
from tests.house import tree

START = datetime(2026, 11, 20, 10, tzinfo=UTC)
WIDTH = 118
# The layout of EmptyWalletDialog and OverageMenuDialog in Gemini CLI 0.61.0, the latter as it was recorded.
LIMIT = (
    "Usage limit reached for all Pro models.",
    "Access resets at 11:53 AM UTC.",
    "/stats model for usage details",
    "/model to switch models.",
    "/auth to switch to API key.",
    "",
)
EMPTY = (
    *LIMIT,
    "To continue using this model now, purchase more AI Credits.",
    "",
    "Newly purchased AI credits may take a few minutes to update.",
    "",
    "How would you like to proceed?",
    "",
    "",
    "● 1. Get AI Credits - Open browser to purchase credits",
    "  2. Switch to gemini-3-flash-preview",
    "  3. Stop - Abort request",
)
OVERAGE = (
    *LIMIT,
    "You have 1000 AI Credits available.",
    "",
    "How would you like to proceed?",
    "",
    "",
    "● 1. Use AI Credits - Continue this request (Overage)",
    "  2. Manage - View balance and purchase more credits",
    "  3. Switch to gemini-3-flash-preview",
    "  4. Stop - Abort request",
)


@pytest.mark.parametrize(("dialog", "scope"), [(EMPTY, Scope.BILLING), (OVERAGE, Scope.MODEL)])
def test_the_offer_to_buy_credits_is_a_billing_limit(dialog: tuple[str, ...], scope: Scope) -> None:
    """A successor on the same account's other model would meet the same; nobody is to wait for one model."""
    detector = Detector(load_rules(), agent=AgentName("gemini"), started_at=START, zone=UTC)
    asked = Record(
        Source.TRANSCRIPT, {"type": "user", "content": [{"text": "hello"}]}, START + timedelta(seconds=1), "t"
    )
    detector.hear(asked, now=START + timedelta(seconds=1))
    box = [f"│ {line:<{WIDTH - 3}}│" for line in ("", *dialog, "")]
    rows = ["╭" + "─" * (WIDTH - 1) + "╮", *box, "╰" + "─" * (WIDTH - 1) + "╯"]
    screen = Screen(tuple(Row(text) for text in rows), WIDTH + 2)
    detector.look(screen, now=START + timedelta(seconds=2), at_offset=0)
    (signal,) = detector.tick(now=START + timedelta(seconds=5))
    assert (signal.kind, signal.scope, signal.decides, signal.model) == (
        "limit",
        scope,
        True,
        "all Pro models",
    )
    assert signal.resets_at == datetime(2026, 11, 20, 11, 53, tzinfo=UTC)


def load_rules() -> Rules:
    with open(f"{tree.ADAPTERS}/gemini/rules.toml", "rb") as file:
        return Rules.parse(tomllib.load(file))
