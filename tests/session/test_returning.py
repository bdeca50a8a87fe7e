"""The way back: the preferred agent is offered its session when its window resets."""

from datetime import timedelta

from agent_relay.domain.effects import AwaitQuiet, ShowMessage, WakeAt
from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.inputs import (
    Answered,
    ClockSetBack,
    HandoffAsked,
    ResetPassed,
)
from agent_relay.domain.limits import Scope
from agent_relay.domain.session import Step
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.fold import fold_event
from agent_relay.session.rests import find_wake
from tests.session.story import HERE, NOW, Story, reset_window


def test_a_returning_agent_resumes_its_own_native_session() -> None:
    """Its history and prompt cache are still there."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    story.availability["ann"] = HERE
    story.happens(HandoffAsked("ann")).gone().published()
    assert (story.now.leg.native_id, story.now.leg.resumes) == ("native-1", True)


def test_a_preferred_agent_is_offered_back_once_when_its_window_resets() -> None:
    """The user decides; being asked twice for the same reset would be nagging."""
    story = reset_window(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    story.happens(ResetPassed())
    assert story.names(last=1) == ["return.offered"]
    assert (story.now.offered, story.now.offer, story.now.returns) == ("ann", "ann", False)
    assert story.effects == [ShowMessage(story.leg)]
    count = len(story.events)
    assert len(story.happens(ResetPassed()).says("ready").events) == count + 1
    assert story.effects == []


def test_an_automatic_return_waits_for_the_end_of_the_turn() -> None:
    """An agent at work is not interrupted."""
    story = reset_window(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    story.happens(ResetPassed(), return_mode="auto")
    assert (story.now.state, story.now.returns) == (State.BUSY, True)
    assert story.effects == [ShowMessage(story.leg)]
    story.says("ready", return_mode="auto")
    assert story.effects == [AwaitQuiet(story.leg)]
    story.quiet(return_mode="auto")
    assert (story.now.handoff.to_agent, story.now.handoff.reason) == ("ann", "command")


def test_an_offer_is_over_when_the_next_leg_begins_or_the_agent_is_limited_again() -> None:
    """A line that offers what cannot be had, or was taken, would be wrong."""
    story = reset_window(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    story.happens(ResetPassed()).happens(HandoffAsked("cas")).gone().published()
    assert (story.now.offered, story.now.offer) == ("ann", "")
    signal = SignalSeen(story.leg, "ann", "limit", "account", "hook", "again", decides=True)
    assert fold_event(story.now, Event(99, NOW, 3, signal)).offered == ""


def test_no_return_is_offered_while_the_agent_rests_or_the_user_wants_none() -> None:
    """A window that moved on, or a user who said off."""
    story = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    count = len(story.events)
    assert len(story.happens(ResetPassed(), return_mode="auto").events) == count
    assert len(reset_window(story).happens(ResetPassed(), return_mode="off").events) == count


def test_an_agent_that_answers_again_ends_the_rest_of_its_session() -> None:
    """Credits were bought, or a window moved: the next limit must find a session that acts on it."""
    story = Story(("ann",)).start().says("busy").limit(Scope.BILLING, resets_at=None)
    assert story.now.state is State.RESTING
    assert story.happens(Answered("another leg")).now.state is State.RESTING
    assert story.happens(Answered(story.leg)).now.state is State.READY
    count = len(story.events)
    assert len(story.happens(Answered(story.leg)).events) == count


def test_an_answer_from_before_the_limit_does_not_end_the_rest() -> None:
    """A hook tells of the limit at once; the transcript with the turn's earlier answers follows."""
    story = Story(("ann",)).start().says("busy").limit(Scope.BILLING, resets_at=None)
    assert story.happens(Answered(story.leg, NOW - timedelta(seconds=1))).now.state is State.RESTING
    assert story.happens(Answered(story.leg, NOW + timedelta(hours=1))).now.state is State.READY


def test_a_damaged_moment_in_the_journal_wakes_who_rests_at_once() -> None:
    """Looking again too early costs nothing; a daemon that cannot start would cost every session."""
    story = reset_window(Story().start().says("busy").to_step(Step.DELIVERED).says("busy"))
    assert story.now.limit is not None
    damaged = replace(story.now, limits=(replace(story.now.limit, until="half past"),))
    assert find_wake(damaged, story.world()) == (WakeAt(story.world().now),)


def test_an_answer_after_the_clock_was_set_back_ends_the_rest() -> None:
    """The limit's moment is yet to come by the new time; what is heard by then came after it."""
    story = Story(("ann",)).start().says("busy").limit(Scope.BILLING, resets_at=None)
    assert story.now.state is State.RESTING
    early = NOW - timedelta(hours=3)
    story.happens(Answered(story.leg, NOW + timedelta(seconds=-1)), now=early)
    assert story.now.state is State.RESTING
    story.happens(Answered(story.leg, early), now=early)
    assert story.names(last=1) == ["session.woke"]


def test_a_leg_of_before_the_clock_was_set_back_began_before_what_it_writes() -> None:
    """Its transcript is searched from its start on, by this daemon and by the next."""
    story = Story().start()
    since = NOW - timedelta(hours=3)
    story.happens(ClockSetBack(story.leg, since))
    assert story.names(last=1) == ["clock.set-back"]
    assert story.now.leg.starting_at == since
    assert story.happens(ClockSetBack(story.leg, NOW)).now.leg.starting_at == since
