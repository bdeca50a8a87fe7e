"""A packet that cannot be written: who was named for a failure takes over, and nothing achieved is lost."""

import pytest

from agent_relay.domain.effects import PublishPacket, SpawnLeg
from agent_relay.domain.inputs import CancelAsked, HandoffAsked, PublishFailed, Restarted, RetryAsked
from agent_relay.domain.session import Step, Terms
from agent_relay.domain.state import State
from tests.session.story import RESTS, Story, asked

BACK = Terms(("a door",), rollback="ann", questions=("why?",))


def fail(story: Story, why: str = "the disk is full") -> Story:
    return story.happens(PublishFailed(story.handoff.id, why))


def test_the_rollback_agent_takes_over_with_a_packet_of_its_own() -> None:
    """What refused the first packet may be its target's own: a template, a size."""
    story = asked(Step.STOPPED)
    failed = story.handoff.id
    fail(story)
    assert story.names(last=3) == ["handoff.failed", "handoff.begun", "handoff.stopped"]
    found = story.begun
    assert (found.to_agent, found.reason, found.why) == ("cas", "failure", "the disk is full")
    assert (found.rolls_back, found.rollback, found.questions) == (failed, "", ("why?",))
    assert (found.deliverables, found.from_agent) == (("a door",), "ann")
    assert story.effects == [PublishPacket(found.handoff)]
    story.published()
    assert story.now.agent == "cas"


def test_where_nobody_can_be_given_a_packet_the_session_ends_and_can_be_retried() -> None:
    """A disk that is full is full for everybody; space, and one command, and it goes on."""
    story = fail(asked(Step.STOPPED))
    second = story.handoff.id
    fail(story)
    assert (story.now.state, story.now.why) == (State.ENDED, "the disk is full")
    story.happens(RetryAsked(second))
    assert story.effects == [PublishPacket(second)]


def test_the_predecessor_goes_on_in_its_own_session_where_not_even_its_packet_can_be_written() -> None:
    """It knows most of what the packet would have said; everything it did stands."""
    story = Story().start().says("busy").says("ready")
    native = story.now.legs[0].native_id
    asked_ = _hand_over(story)
    fail(asked_)
    assert story.begun.to_agent == "ann"
    fail(story)
    assert story.names(last=3) == ["handoff.failed", "session.rested", "leg.starting"]
    leg = story.now.living_leg
    assert leg is not None
    assert (leg.agent, leg.native_id, leg.resumes, leg.handoff) == ("ann", native, True, "")
    assert story.effects == [SpawnLeg(leg.id)]
    assert story.spawned().says("ready").now.state is State.READY
    assert story.now.failure == "the disk is full"


def test_a_rollback_agent_that_rests_is_not_woken_and_the_session_says_so() -> None:
    """Its window is no wider for somebody else's failure."""
    story = asked(Step.STOPPED)
    story.availability["cas"] = RESTS
    fail(story)
    assert story.now.state is State.ENDED
    assert story.now.why.startswith("the disk is full (cas: rests until")
    story = _hand_over(Story().start().says("busy").says("ready"))
    fail(story)
    story.availability["ann"] = RESTS
    fail(story)
    assert story.now.why.startswith("the disk is full (ann: rests until")


@pytest.mark.parametrize("lines", [1, 2, 3])
def test_a_rollback_survives_a_crash_at_any_line(lines: int) -> None:
    """Killed after the failure was journalled, the next daemon hands over to the one that was named."""
    story = asked(Step.STOPPED)
    before = len(story.events)
    fail(story)
    story.refold(story.events[: before + lines]).happens(Restarted(leg_lives=False))
    assert story.begun.to_agent == "cas"
    assert story.effects == [PublishPacket(story.begun.handoff)]


def test_without_a_rollback_agent_or_cancelled_it_ends_as_ever() -> None:
    """Nobody is started whom nobody named."""
    story = fail(asked(Step.STOPPED, Terms()))
    assert (story.now.state, story.now.why) == (State.ENDED, "the disk is full")
    story = asked(Step.STOPPED)
    story.happens(CancelAsked(story.handoff.id))
    fail(story)
    assert (story.now.state, story.effects) == (State.ENDED, [])


def test_a_failure_told_late_takes_nothing_from_an_agent_that_lives() -> None:
    """A packet written twice after a crash may fail the second time."""
    story = fail(asked(Step.SPAWNED))
    assert story.names(last=1) == ["handoff.failed"]
    assert story.now.living_leg is not None
    assert (story.now.due, story.effects) == (None, [])


def _hand_over(story: Story) -> Story:
    """A handoff to bob, of which ann is the rollback agent, whose predecessor has stopped."""
    return story.happens(HandoffAsked("bob", terms=BACK)).gone()
