"""What people do to a handoff: call it off or try it again; and what follows at every step."""

import pytest

from agent_relay.domain.effects import DeliverPacket, PublishPacket, SpawnLeg, StopLeg
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.inputs import (
    CancelAsked,
    Delivered,
    DeliverFailed,
    HandoffAsked,
    PromptTaken,
    PublishFailed,
    ResetPassed,
    Restarted,
    RetryAsked,
    Spawned,
)
from agent_relay.domain.session import Step, Terms
from agent_relay.domain.state import State
from tests.session.story import RESTS, Story, asked


def is_at_rest(story: Story) -> bool:
    now = story.now
    return (now.state, now.handoff, now.living_leg, now.is_held) == (State.RESTING, None, None, True)


def test_cancelled_before_its_packet_it_rests_once_there_is_one() -> None:
    """The predecessor is on its way out and cannot be called back: what it knew must be kept."""
    story = asked(Step.BEGUN)
    story.happens(CancelAsked(story.handoff.id, "changed my mind"))
    assert (story.names(last=1), story.effects) == (["handoff.cancelled"], [])
    story.gone()
    assert story.effects == [PublishPacket(story.handoff.id)]
    story.published()
    assert story.names(last=2) == ["packet.published", "session.rested"]
    assert is_at_rest(story)
    assert story.handoff.packet == "P1"


def test_cancelled_while_its_successor_starts_that_one_is_stopped() -> None:
    """It lives, perhaps, and was given nothing: two agents at work is what must not be."""
    for step in (Step.SPAWNING, Step.SPAWNED):
        story = asked(step)
        story.happens(CancelAsked(story.handoff.id))
        assert (story.now.state, story.effects) == (State.HANDING_OFF, [StopLeg(story.leg)])
        story.happens(Spawned(story.leg, 10, 11, 12)).says("ready")
        story.delivered().happens(DeliverFailed(story.handoff.id, story.leg, "x"))
        assert story.effects == []
        story.gone()
        assert story.names(last=2) == ["leg.ended", "session.rested"]
        assert is_at_rest(story)


def test_a_cancel_is_finished_by_the_next_daemon() -> None:
    """It may be killed between any two lines."""
    story = asked(Step.STOPPED)
    story.happens(CancelAsked(story.handoff.id))
    assert story.happens(Restarted(leg_lives=False)).effects == [PublishPacket(story.handoff.id)]
    story = asked(Step.SPAWNED)
    story.happens(CancelAsked(story.handoff.id))
    assert story.happens(Restarted(leg_lives=True)).effects == [StopLeg(story.leg)]
    assert is_at_rest(story.happens(Restarted(leg_lives=False)))
    for step in (Step.SPAWNING, Step.SPAWNED):
        story = asked(step)
        story.happens(CancelAsked(story.handoff.id)).gone()
        assert is_at_rest(story.cut(-1).happens(Restarted(leg_lives=False)))
    story = asked(Step.STOPPED)
    story.refold(story.published().events[:-1]).happens(CancelAsked(story.handoff.id))
    assert is_at_rest(story)
    assert is_at_rest(story.refold(story.events[:-1]).happens(Restarted(leg_lives=False)))


def test_what_cannot_be_cancelled_says_why() -> None:
    """Each in one sentence with a way on."""
    story = asked(Step.BEGUN)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff))
    with pytest.raises(WrongUseError, match="is being cancelled already"):
        story.happens(CancelAsked(handoff))
    with pytest.raises(WrongUseError, match="the handoff to bob is being cancelled"):
        story.happens(HandoffAsked("cas"))
    story.gone().published()
    with pytest.raises(WrongUseError, match="was cancelled already") as caught:
        story.happens(CancelAsked(handoff))
    assert caught.value.hint == f"Go on with it: agent-relay handoff retry {handoff}"
    story = asked(Step.DELIVERED)
    with pytest.raises(WrongUseError, match="too late to cancel: bob already has the packet") as caught:
        story.happens(CancelAsked(story.handoff.id))
    back = "agent-relay ann --session S"
    assert caught.value.hint == f"Take it back: {back}, or agent-relay handoff fail {story.handoff.id}"
    story.says("busy")
    with pytest.raises(WrongUseError, match="has been made, so it cannot be cancelled"):
        story.happens(CancelAsked(story.handoff.id))
    with pytest.raises(WrongUseError, match="is over and the session has gone on"):
        story.happens(CancelAsked("H0"))


def test_a_session_at_rest_by_a_cancel_is_woken_by_no_reset() -> None:
    """The person said stop; that some limit ends is no reason to begin again."""
    story = asked(Step.SPAWNED)
    story.happens(CancelAsked(story.handoff.id)).gone()
    assert story.happens(ResetPassed(), resume_at_reset=True).effects == []
    assert is_at_rest(story)


def test_a_cancelled_handoff_goes_on_from_its_packet() -> None:
    """What was gathered is not gathered twice."""
    story = asked(Step.SPAWNED)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff)).gone().happens(RetryAsked(handoff))
    assert story.names(last=2) == ["handoff.retried", "leg.starting"]
    assert story.effects == [SpawnLeg(story.leg)]
    story.spawned().says("ready")
    assert story.effects == [DeliverPacket(handoff, story.leg)]
    story.happens(Delivered(handoff, story.leg)).says("busy")
    assert [done.id for done in story.now.done] == [handoff]
    assert story.now.retriable is None


def test_a_handoff_without_a_packet_goes_on_by_making_it() -> None:
    """A full disk was the reason, and is no more."""
    story = asked(Step.STOPPED, Terms())
    handoff = story.handoff.id
    story.happens(PublishFailed(handoff, "the disk is full"))
    assert (story.now.state, story.handoff.id) == (State.ENDED, handoff)
    story.happens(RetryAsked(handoff))
    assert story.effects == [PublishPacket(handoff)]
    with pytest.raises(WrongUseError, match="is under way"):
        story.happens(RetryAsked(handoff))
    story.published().spawned().says("ready").happens(Delivered(handoff, story.leg)).says("busy")
    assert story.now.done[-1].id == handoff


def test_a_retry_survives_a_crash_at_any_line() -> None:
    """Its first line alone is enough for the next daemon to go on."""
    for step, effect in ((Step.SPAWNED, SpawnLeg), (Step.STOPPED, PublishPacket)):
        story = asked(step, Terms())
        handoff = story.handoff.id
        if step is Step.SPAWNED:
            story.happens(CancelAsked(handoff)).gone()
        else:
            story.happens(PublishFailed(handoff, "full"))
        before = len(story.events)
        story.happens(RetryAsked(handoff))
        assert story.events[before].body.name == "handoff.retried"
        story.refold(story.events[: before + 1]).happens(Restarted(leg_lives=False))
        assert [type(one) for one in story.effects] == [effect]


def test_a_packet_that_could_not_be_given_is_given_again() -> None:
    """Somebody was typing; now nobody is."""
    story = asked(Step.SPAWNED).says("ready")
    handoff, leg = story.handoff.id, story.leg
    story.happens(DeliverFailed(handoff, leg, "typing"))
    assert story.begun.handoff != handoff  # its rollback agent took over
    story = asked(Step.SPAWNED, Terms()).says("ready")
    handoff, leg = story.handoff.id, story.leg
    story.happens(DeliverFailed(handoff, leg, "typing")).happens(RetryAsked(handoff))
    assert story.effects == [DeliverPacket(handoff, leg)]
    story.happens(DeliverFailed(handoff, leg, "typing")).says("asking").happens(RetryAsked(handoff))
    assert story.effects == []
    assert story.says("ready").effects == [DeliverPacket(handoff, leg)]
    story.happens(DeliverFailed(handoff, leg, "typing")).happens(PromptTaken(leg))
    # It was used without its packet meanwhile; what it should have read is no less wanted for that.
    assert story.happens(RetryAsked(handoff)).effects == [DeliverPacket(handoff, leg)]
    assert story.happens(Delivered(handoff, leg)).names(last=2) == ["handoff.delivered", "handoff.confirmed"]


def test_a_retry_checks_its_target_first() -> None:
    """An agent that rests would only fail again."""
    story = asked(Step.SPAWNED)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff)).gone()
    story.availability["bob"] = RESTS
    with pytest.raises(NobodyAvailableError, match="bob: rests until 19:20") as caught:
        story.happens(RetryAsked(handoff))
    assert caught.value.hint == f"agent-relay handoff retry {handoff} --yes tries all the same"
    assert story.happens(RetryAsked(handoff, force=True)).effects == [SpawnLeg(story.leg)]


def test_a_session_that_went_on_has_nothing_to_retry() -> None:
    """Its packet tells of a tree that is no more."""
    story = asked(Step.SPAWNED)
    handoff = story.handoff.id
    story.happens(CancelAsked(handoff)).gone().happens(HandoffAsked("cas"))
    with pytest.raises(WrongUseError, match="is over and the session has gone on"):
        story.happens(RetryAsked(handoff))
