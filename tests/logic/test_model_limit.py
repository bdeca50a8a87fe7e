"""A limit of one model: the same agent goes on with another one, or gives way."""

import pytest

from agent_relay.domain.effect import Asked, Delivered, PublishFailed, ResetPassed, Restarted, StopLeg
from agent_relay.domain.session import State
from agent_relay.domain.signal import Scope
from agent_relay.logic.fold import fold_events
from agent_relay.logic.outcome import World
from tests.logic.story import Story, reset_window


def on_fallback() -> Story:
    """A session whose agent works on its fallback model."""
    story = Working().start().says("busy").limit(Scope.MODEL, model="large")
    return take_over(story)


def take_over(story: Story) -> Story:
    """The handoff under way comes to its end."""
    story.gone().published().spawned().says("ready")
    return story.happens(Delivered(story.now.handoff.id, story.leg)).says("busy")


class Working(Story):
    """A session whose first two agents have a fallback model."""

    def world(self, **changes: object) -> World:
        return super().world(**({"fallback_models": {"ann": "small", "bob": "tiny"}} | changes))


def test_an_agent_goes_on_with_its_fallback_model_in_its_own_native_session() -> None:
    """Its history and most of its cache are still there; only the model is out of reach."""
    story = Working().start().says("busy").limit(Scope.MODEL, model="large")
    handoff = story.now.handoff
    assert (handoff.to_agent, handoff.model, handoff.reason) == ("ann", "small", "rate_limit")
    assert story.effects[-1] == StopLeg("L1")
    story.gone().published()
    leg = story.now.leg
    assert (leg.agent, leg.model, leg.native_id, leg.resumes) == ("ann", "small", "native-1", True)
    assert story.now.limit.model == "large"


def test_a_fallback_that_is_limited_too_gives_way_to_the_next_agent() -> None:
    """Two models of one agent must not be tried in turns until morning."""
    story = on_fallback().limit(Scope.MODEL)
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("bob", "")
    assert Working().start().limit(Scope.MODEL, model="small").now.handoff.to_agent == "bob"


@pytest.mark.parametrize("scope", [Scope.ACCOUNT, Scope.BILLING])
def test_a_limit_of_the_whole_account_is_no_matter_of_models(scope: Scope) -> None:
    """Another model of the same account is as limited."""
    assert Working().start().limit(scope).now.handoff.to_agent == "bob"


def test_without_a_fallback_the_next_agent_comes() -> None:
    """Nobody chose another model, and relay knows none."""
    assert Story().start().limit(Scope.MODEL).now.handoff.to_agent == "bob"


def test_a_fallback_that_does_not_start_gives_way() -> None:
    """A misspelt model must not strand the user."""
    story = Working().start().says("busy").limit(Scope.MODEL).gone().published().gone("unstarted")
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("bob", "")


@pytest.mark.parametrize("leg_lives", [True, False])
def test_a_new_daemon_takes_the_same_remedy(*, leg_lives: bool) -> None:
    """Killed between the limit's line and the handoff's, nothing is decided differently."""
    whole = Working().start().says("busy").limit(Scope.MODEL)
    story = Working()
    story.availability = whole.availability
    story.events = [event for event in whole.events if event.body.name != "handoff.begun"]
    story.session = fold_events(story.events)
    assert story.now.state is State.LIMITED
    story.happens(Restarted(leg_lives))
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("ann", "small")


def test_a_new_daemon_goes_on_where_no_limit_was_the_cause() -> None:
    """A packet that could not be written leaves a session limited that never hit one."""
    story = Working().start().says("busy").happens(Asked("bob")).gone()
    story.happens(PublishFailed(story.now.handoff.id, "the disk is full"))
    story.events.pop()
    story.session = fold_events(story.events)
    assert (story.now.state, story.now.limit) == (State.LIMITED, None)
    story.happens(Restarted(leg_lives=False))
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("bob", "")


def test_an_agent_that_only_changed_its_model_is_not_offered_back() -> None:
    """It never left; who left it by hand later did not mean to be asked."""
    story = reset_window(take_over(on_fallback().happens(Asked("bob"))))
    count = len(story.events)
    assert story.now.agent == "bob"
    assert len(story.happens(ResetPassed()).events) == count
