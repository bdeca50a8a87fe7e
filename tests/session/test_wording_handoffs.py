"""What people read after they cancelled a handoff, tried it again or judged it."""

from datetime import UTC

import pytest

from agent_relay.domain.inputs import CancelAsked, CloseAsked, Published, RetryAsked
from agent_relay.domain.session import NO_TERMS, Step
from agent_relay.session.views.messages import render_handoff_line, render_intervention, render_message
from tests.session.story import asked, made


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step.BEGUN, "ann is already ending; its packet will still be written."),
        (Step.STOPPED, "ann has already ended; its packet will still be written."),
        (Step.SPAWNING, "ann has already ended; its packet is written. bob is being stopped."),
        (Step.SPAWNED, "ann has already ended; its packet is written. bob is being stopped."),
    ],
)
def test_a_cancel_says_what_it_means_at_its_step(step: Step, said: str) -> None:
    """The agent that gave way does not come back by itself, and people must know."""
    story = asked(step)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff))
    expected = f"→ {said} The session will then rest. Go on: agent-relay handoff retry {handoff}"
    assert render_intervention(story.now, handoff) == expected


def test_what_a_packet_lacks_is_said_between_the_two_agents() -> None:
    """Who reads it there can still tell the successor what it does not know."""
    story = asked(Step.STOPPED)
    note = "3 of 7 lines of ann's own record could not be understood"
    story.happens(Published(story.handoff.id, "P1", 1, "1.json", "1.md", "f", lacks=note))
    line = render_handoff_line(story.now, story.handoff, UTC)
    assert line.endswith(
        "Packet: /r/.agent-relay/sessions/S/1.md (3 of 7 lines of ann's own record could not be understood)"
    )


def test_a_session_at_rest_by_a_cancel_says_both_ways_on() -> None:
    """Every terminal attached reads it too."""
    story = asked(Step.SPAWNED)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff)).gone()
    expected = (
        "→ The handoff to bob was cancelled. Its packet: /r/.agent-relay/sessions/S/1.md. Go on: agent-relay"
        f" handoff retry {handoff}, or switch back: agent-relay ann --session S"
    )
    assert render_message(story.now, UTC) == expected
    assert render_intervention(story.now, handoff) == expected
    story.happens(RetryAsked(handoff))
    assert render_intervention(story.now, handoff) == f"→ Handoff {handoff} to bob is under way."


def test_a_verdict_is_said() -> None:
    """Silence would leave people wondering whether it was heard."""
    story = made(NO_TERMS)
    handoff = story.handoff.id
    story.happens(CloseAsked(handoff, "completed"))
    assert render_intervention(story.now, handoff) == f"→ Handoff {handoff} is closed."
