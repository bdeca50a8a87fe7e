"""A session's history as `/log` lists it."""

from datetime import timedelta
from zoneinfo import ZoneInfo

from agent_relay.domain.events.session import Event, SessionCreated, SignalSeen
from agent_relay.domain.inputs import CancelAsked, DeliverFailed, RetryAsked
from agent_relay.domain.limits import Evidence, Source
from agent_relay.domain.session import Step
from agent_relay.session.views.event_lines import list_history
from tests.session.story import NOW, Story, asked

ZONE = ZoneInfo("Europe/Berlin")
LIMIT = Evidence(Source.HOOK, "You've hit your session limit")


def test_a_failover_is_one_line_with_the_limit_and_who_went_on() -> None:
    """The bar is gone by then; this is where it is read again."""
    story = Story().start().limit(evidence=LIMIT).take_over()
    went_on = "Continued with bob. Packet: /r/.agent-relay/sessions/S/1.md"
    lane = "bob read the packet: it had no conversation here"
    assert list_history(story.events, ZONE) == [
        "Nov 21, 19:20  session begins in /r",
        f"Nov 21, 19:20  ann hit its session limit (resets 22:20). {went_on} ({lane})",
    ]


def test_a_limit_nobody_has_taken_over_from_yet_is_told_at_once() -> None:
    """The handoff it began may still fail."""
    story = Story().start().limit(evidence=LIMIT).gone()
    assert list_history(story.events, ZONE)[1:] == ["Nov 21, 19:20  ann hit its session limit (resets 22:20)"]


def test_what_was_cancelled_failed_and_tried_again_is_told() -> None:
    """With who was to go on, and why they did not."""
    story = asked(Step.SPAWNED)
    story.happens(CancelAsked(story.handoff.id)).gone()
    story.happens(RetryAsked(story.handoff.id)).spawned().says("ready")
    story.happens(DeliverFailed(story.handoff.id, story.leg, "bob did not begin to work on its packet"))
    assert [line[15:] for line in list_history(story.events, ZONE)[1:]][:3] == [
        "the handoff to bob was cancelled",
        "session rests: the handoff to bob was cancelled",
        "the handoff to bob was tried again",
    ]
    (failed,) = (line for line in list_history(story.events, ZONE) if "failed" in line)
    why = "bob did not begin to work on its packet"
    assert failed[15:] == f"the handoff to bob failed before its successor had its packet: {why}"


def test_a_rest_says_until_when() -> None:
    """And nothing is told of what changes with every turn."""
    story = Story(("ann",)).start().says("busy").says("ready").says("busy").limit(evidence=LIMIT)
    assert list_history(story.events, ZONE)[1:] == [
        "Nov 21, 19:20  ann hit its session limit (resets 22:20)",
        "Nov 21, 19:20  session rests until 22:20: ann hit its session limit",
    ]


def test_what_an_agent_said_cannot_paint_and_a_long_history_is_cut() -> None:
    """It is shown over somebody's terminal."""
    first = Event(1, NOW, 0, SessionCreated("S", "/r\x1b[2J\n", "/r", ("ann",), ""))
    said = SignalSeen("L", "ann", "limit", "account", "hook", "it", decides=True)
    many = [Event(number, NOW + timedelta(seconds=number), 0, said) for number in range(2, 1000)]
    lines = list_history([first, *many], ZONE)
    assert len(lines) == 500
    assert list_history([first], ZONE) == ["Nov 21, 19:20  session begins in /r"]
