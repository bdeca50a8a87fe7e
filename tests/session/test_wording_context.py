"""What the user reads of a full context: how full, and how it is handed over."""

from datetime import UTC, timedelta

from agent_relay.domain.events.session import ReturnOffered
from agent_relay.domain.inputs import SignalFound
from agent_relay.domain.limits import Context, ContextWishes, Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.values import AgentName
from agent_relay.session.decision import Outcome
from agent_relay.session.views.messages import render_fill, render_message
from tests.session.story import filling

ASK = ContextWishes(mode="ask")
LINE = (
    "→ The context of ann is 95 % full (950 of 1,000 tokens)."
    " Hand over when it suits you: press the relay key and type /handoff"
)


def test_how_full_a_context_is_reads_in_tokens_and_percent() -> None:
    """A window nobody knows has no percentage, and no invented one."""
    assert render_fill(Context(used=152_000, room=167_000)) == "91 % full (152,000 of 167,000 tokens)"
    assert render_fill(Context(used=152_000)) == "152,000 tokens long"


def test_a_full_context_is_told_with_the_way_to_a_fresh_one() -> None:
    """One line, until it is low again."""
    story = filling(ASK).turn(950)
    assert render_message(story.now, UTC) == LINE
    story.turn(100)
    assert render_message(story.now, UTC) == ""


def test_the_newer_of_two_warnings_is_told() -> None:
    """There is one line on the screen, and the older warning was read."""
    words = Evidence(Source.HOOK, "You've used 92% of your session limit")
    near = Signal(AgentName("ann"), Kind.NEAR_LIMIT, Scope.WARNING, words, decides=True)
    story = filling(ASK).turn(950)
    story.wait(1)
    story.happens(SignalFound("L1", near))
    assert render_message(story.now, UTC).startswith("→ ann is near its session limit")
    story.fills(960, at=story.moment + timedelta(minutes=1))
    story.fills(850, at=story.moment + timedelta(minutes=2))
    assert render_message(story.now, UTC).startswith("→ The context of ann is 85 % full")


def test_an_offer_is_told_along_with_it() -> None:
    """Neither hides the other."""
    story = filling(ASK).turn(950)
    story.journal(Outcome((ReturnOffered("bob"),)))
    assert render_message(story.now, UTC).startswith(f"{LINE}. bob is available again. To switch back:")


def test_the_line_between_two_legs_says_why() -> None:
    """The same agent comes back under another conversation: that must not look like a crash."""
    story = filling().turn(100).turn(950).quiet()
    assert render_message(story.now, UTC) == (
        "→ ann hands over: its context is 95 % full (950 of 1,000 tokens). Continuing with a fresh ann."
    )
