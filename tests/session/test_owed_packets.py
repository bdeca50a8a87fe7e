"""A packet its successor never worked on: whoever is started next in the session is given it."""

import pytest

from agent_relay.domain.effects import DeliverPacket, PublishPacket, SpawnLeg
from agent_relay.domain.events.session import LegStarting
from agent_relay.domain.inputs import DeliverFailed, HandoffAsked, Restarted
from agent_relay.domain.session import Step, Terms
from agent_relay.domain.state import State
from tests.session.story import Story, asked

NOTHING = Terms()


def newest(story: Story) -> LegStarting:
    return next(event.body for event in reversed(story.events) if isinstance(event.body, LegStarting))


def test_a_successor_killed_between_its_prompt_and_its_packet_is_started_again() -> None:
    """It had shown its prompt, and nothing of what the user wanted: that is in the packet alone."""
    story = asked(Step.SPAWNED, NOTHING).says("ready").gone("lost")
    assert story.names(last=4) == ["leg.ended", "handoff.failed", "handoff.begun", "handoff.stopped"]
    assert (story.begun.to_agent, story.begun.reason) == ("bob", "failure")
    assert story.begun.why == "bob ended before it was given its packet"
    assert story.effects == [PublishPacket(story.begun.handoff)]


def test_a_successor_that_dies_each_time_it_is_to_be_given_its_packet_gives_way_to_the_next() -> None:
    """Two crashes are no bad luck: the same agent for ever would be a loop that nobody ends."""
    story = Story().start().to_step(Step.SPAWNED).says("ready").gone("lost")
    story.published().spawned().says("ready").gone("lost")
    assert story.begun.to_agent == "cas"


def test_a_delivery_that_fails_because_its_agent_died_counts_as_that_agents_failure() -> None:
    """Which of the two is told first is chance; without this the session would end there."""
    story = Story().start().to_step(Step.SPAWNED).says("ready")
    for _ in range(2):
        story.happens(DeliverFailed(story.handoff.id, story.leg, "its holder is gone")).gone("lost")
        last = story.begun.to_agent
        story.published().spawned().says("ready")
    assert last == "cas"


def test_a_successor_a_person_had_leave_before_its_packet_ends_the_session_and_leaves_it_waiting() -> None:
    """Who presses Ctrl-D wants it gone; what it was to be told is not theirs to lose by that."""
    story = asked(Step.SPAWNED, NOTHING).says("ready").gone("exited")
    first = story.handoff
    assert story.now.state is State.ENDED
    story.happens(HandoffAsked("bob"))
    assert story.names(last=2) == ["handoff.retried", "leg.starting"]
    assert (newest(story).packet, newest(story).handoff) == (first.packet, first.id)
    assert story.effects == [SpawnLeg(newest(story).leg)]
    story.spawned().says("ready")
    assert story.effects == [DeliverPacket(first.id, story.leg)]


def test_what_a_rest_left_undelivered_is_given_to_whoever_is_asked_next() -> None:
    """A full runtime folder fails every start: room again, and one command, and the prompt is there."""
    story = Story().start().to_step(Step.SPAWNING)
    story.gone("unstarted").published().gone("unstarted").published().gone("unstarted").published()
    story.gone("unstarted")
    assert (story.now.state, story.now.agent) == (State.RESTING, "cas")
    owed = story.handoff
    story.happens(HandoffAsked("cas"))
    assert (newest(story).agent, newest(story).packet, newest(story).handoff) == ("cas", owed.packet, owed.id)


def test_somebody_else_asked_for_then_is_handed_a_packet_of_its_own() -> None:
    """Nobody is started with an empty head in a session that has a past."""
    story = asked(Step.SPAWNED, NOTHING).says("ready").gone("exited")
    story.happens(HandoffAsked("cas"))
    assert (story.begun.from_agent, story.begun.to_agent) == ("bob", "cas")
    assert story.effects == [PublishPacket(story.begun.handoff)]


def test_a_wish_for_more_makes_a_packet_that_says_it() -> None:
    """The focus of who asks now is not in the packet there is."""
    story = asked(Step.SPAWNED, NOTHING).says("ready").gone("exited")
    story.happens(HandoffAsked("bob", focus="the door"))
    assert (story.begun.to_agent, story.begun.focus) == ("bob", "the door")


def test_a_successor_whose_own_conversation_is_not_known_is_handed_over_to_itself() -> None:
    """Killed before its record had a name, it would begin with an empty head."""
    story = asked(Step.DELIVERED, NOTHING).says("busy").gone("lost")
    assert story.now.state is State.ENDED
    story.happens(HandoffAsked("bob"))
    assert (story.begun.from_agent, story.begun.to_agent) == ("bob", "bob")
    assert story.effects == [PublishPacket(story.begun.handoff)]


@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_a_daemon_killed_while_it_writes_that_down_goes_on_with_it(lines: int) -> None:
    """Between any two of the lines the next one finds who is to be given the packet."""
    story = asked(Step.SPAWNED, NOTHING).says("ready")
    before = len(story.events)
    story.gone("lost")
    story.refold(story.events[: before + lines]).happens(Restarted(leg_lives=False))
    assert story.begun.to_agent == "bob"
    assert story.effects == [PublishPacket(story.begun.handoff)]
