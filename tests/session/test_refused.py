"""An agent that is signed out, or whose key is refused: the user is told, and nobody takes over for that."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import ShowMessage
from agent_relay.domain.inputs import Answered, HandoffAsked, ResetPassed, Restarted
from agent_relay.domain.limits import Kind, Scope
from agent_relay.domain.state import State
from agent_relay.session.decision import DecisionContext
from tests.session.story import NOW, Story, reset_window


def refused() -> Story:
    """A session whose agent just heard that its key is not valid."""
    return Story().start().says("busy").limit(Scope.AUTH, kind=Kind.FAILURE)


def test_the_user_is_told_and_the_agent_stays() -> None:
    """Only they can sign in; another agent would hide that somebody has to."""
    story = refused()
    assert (story.now.state, story.now.handoff, story.now.agent) == (State.BUSY, None, "ann")
    assert story.effects == [ShowMessage("L1")]
    assert story.now.refusal.text == "You've hit it"
    assert story.now.limit is None


def test_the_same_refusal_is_told_once() -> None:
    """Hook, transcript and screen all say it, each in its own words."""
    story = refused().limit(Scope.AUTH, kind=Kind.FAILURE)
    assert story.effects == []
    assert len(story.now.refused) == 1


def test_a_refusal_that_is_not_certain_is_journalled_only() -> None:
    """Anybody can print the words."""
    story = Story().start().says("busy").limit(Scope.AUTH, kind=Kind.FAILURE, decides=False)
    assert (story.effects, story.now.refusal) == ([], None)
    assert story.names(last=1) == ["signal.seen"]


def test_a_refusal_while_the_agent_is_being_replaced_disturbs_nobody() -> None:
    """It is on its way out: what it says last is history."""
    story = Story().start().says("busy").limit().limit(Scope.AUTH, kind=Kind.FAILURE)
    assert (story.now.state, story.effects) == (State.HANDING_OFF, [])


def test_an_answer_ends_it_unless_it_is_older() -> None:
    """Sources tell at different speeds: the turn's earlier words may be read after its failure."""
    story = refused()
    assert story.happens(Answered(story.leg, NOW - timedelta(seconds=1))).now.refusal is not None
    assert story.happens(Answered("another leg", NOW + timedelta(seconds=1))).now.refusal is not None
    story.happens(Answered(story.leg, NOW + timedelta(seconds=1)))
    assert story.names(last=1) == ["leg.answered"]
    assert story.now.refusal is None
    assert refused().happens(Answered("L1")).now.refusal is None


def test_an_answer_ends_a_rest_and_a_refusal_at_once() -> None:
    """Out of credits, then signed out; the user mended both."""
    story = Story(("ann",)).start().says("busy").limit(Scope.BILLING, resets_at=None)
    story.limit(Scope.AUTH, kind=Kind.FAILURE)
    assert story.effects == [ShowMessage("L1")]
    story.happens(Answered(story.leg))
    assert story.names(last=2) == ["leg.answered", "session.woke"]
    assert story.now.state is State.READY


def test_who_was_refused_is_not_chosen_by_itself_but_by_name() -> None:
    """A failover to an agent that cannot answer stops the work; who names it has signed in since."""
    story = refused()
    story.happens(HandoffAsked("bob")).succeeded()
    assert (story.now.refusal, [found.agent for found in story.now.refused]) == (None, ["ann"])
    story.limit()
    assert story.now.handoff.to_agent == "cas"
    assert story.now.skipped == ("ann: not signed in",)
    story = refused()
    story.happens(HandoffAsked("bob")).succeeded()
    story.happens(HandoffAsked("ann")).gone().published()
    assert (story.now.agent, story.now.refused) == ("ann", ())


def test_a_new_daemon_says_nothing_twice_and_starts_nobody() -> None:
    """No retry loop: the agent stands where it stood."""
    story = refused().happens(Restarted(leg_lives=True))
    assert (story.effects, story.now.agent, story.now.refusal is not None) == ([], "ann", True)


@pytest.mark.parametrize("mode", ["offer", "auto"])
def test_who_was_refused_is_not_offered_back(mode: str) -> None:
    """Its window has reset, and it would still not answer."""
    story = refused().limit().succeeded()
    story.happens(HandoffAsked("cas")).succeeded()
    count = len(reset_window(story).events)
    assert len(story.happens(ResetPassed(), return_mode=mode).events) == count


def test_an_agent_nobody_knows_changes_no_world() -> None:
    """An adapter may be gone since."""
    story = refused()
    world = DecisionContext(NOW, {}, "H", "L")
    del story.availability["ann"]
    assert story.happens(Restarted(leg_lives=True), availability=world.availability).effects == []
