"""Handoffs somebody asked for, at every step, for the tests of what people do to them."""

from datetime import timedelta

from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import Delivered, HandoffAsked
from agent_relay.domain.session import Handoff, Step, Terms
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from tests.session.story import NOW, Story

TERMS = Terms(("a door",), ("it opens",), ("no nails",), "high", (), "cas", ("why?",))
RESTS = Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=1))


def asked(step: Step, terms: Terms = TERMS) -> Story:
    """A handoff from ann to bob that somebody asked for, at `step`."""
    story = Story().start().happens(HandoffAsked("bob", terms=terms))
    walk = {
        Step.BEGUN: lambda: story,
        Step.STOPPED: story.gone,
        Step.SPAWNING: story.published,
        Step.SPAWNED: story.spawned,
        Step.DELIVERED: lambda: story.says("ready").happens(Delivered(of(story).id, story.leg)),
    }
    for at, go in walk.items():
        go()
        if at is step:
            break
    return story


def made(terms: Terms = TERMS) -> Story:
    """A handoff from ann to bob that was made."""
    return asked(Step.DELIVERED, terms).says("busy")


def of(story: Story) -> Handoff:
    handoff = story.now.handoff or story.now.retriable or story.now.done[-1]
    assert handoff is not None
    return handoff


def begun(story: Story) -> HandoffBegun:
    """The newest handoff's first event."""
    return next(event.body for event in reversed(story.events) if isinstance(event.body, HandoffBegun))


def is_at_rest(story: Story) -> bool:
    now = story.now
    return (now.state, now.handoff, now.living_leg, now.is_held) == (State.RESTING, None, None, True)
