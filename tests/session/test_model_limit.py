"""A limit of one model: the same agent goes on with another one, or gives way."""

from datetime import UTC, timedelta

import pytest

from agent_relay.domain.effects import AwaitQuiet, ShowMessage, StopLeg
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import (
    HandoffAsked,
    PublishFailed,
    ResetPassed,
    Restarted,
)
from agent_relay.domain.limits import Scope
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.views.messages import render_message
from tests.session.story import NOW, RESET, Story, reset_window


def on_fallback() -> Story:
    """A session whose agent works on its fallback model."""
    story = working().limit(Scope.MODEL, model="large")
    return story.take_over()


def working() -> Story:
    """A session whose first two agents have a fallback model; the first one works."""
    return Story(fallback_models={"ann": "small", "bob": "tiny"}).start().says("busy")


def test_an_agent_goes_on_with_its_fallback_model_in_its_own_native_session() -> None:
    """Its history and most of its cache are still there; only the model is out of reach."""
    story = working().limit(Scope.MODEL, model="large")
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
    assert working().limit(Scope.MODEL, model="small").now.handoff.to_agent == "bob"


@pytest.mark.parametrize("scope", [Scope.ACCOUNT, Scope.BILLING])
def test_a_limit_of_the_whole_account_is_no_matter_of_models(scope: Scope) -> None:
    """Another model of the same account is as limited."""
    assert working().limit(scope).now.handoff.to_agent == "bob"


def test_without_a_fallback_the_next_agent_comes() -> None:
    """Nobody chose another model, and relay knows none."""
    assert Story().start().limit(Scope.MODEL).now.handoff.to_agent == "bob"


def test_a_fallback_that_does_not_start_gives_way() -> None:
    """A misspelt model must not strand the user."""
    story = working().limit(Scope.MODEL).gone().published().gone("unstarted")
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("bob", "")


@pytest.mark.parametrize("leg_lives", [True, False])
def test_a_new_daemon_takes_the_same_remedy(*, leg_lives: bool) -> None:
    """Killed between the limit's line and the handoff's, nothing is decided differently."""
    whole = working().limit(Scope.MODEL)
    story = whole.refold([event for event in whole.events if event.body.name != "handoff.begun"])
    assert story.now.state is State.LIMITED
    story.happens(Restarted(leg_lives))
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("ann", "small")


def test_a_new_daemon_goes_on_where_no_limit_was_the_cause() -> None:
    """A packet that could not be written leaves a session limited that never hit one."""
    story = working().happens(HandoffAsked("bob")).gone()
    story.happens(PublishFailed(story.now.handoff.id, "the disk is full"))
    story = story.cut(-1)
    assert (story.now.state, story.now.limit) == (State.LIMITED, None)
    story.happens(Restarted(leg_lives=False))
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("bob", "")


def test_an_agent_that_only_changed_its_model_is_not_offered_back() -> None:
    """It never left; who left it by hand later did not mean to be asked."""
    story = reset_window(on_fallback().happens(HandoffAsked("bob")).take_over())
    count = len(story.events)
    assert story.now.agent == "bob"
    assert len(story.happens(ResetPassed()).events) == count


def back_on_time(story: Story, **changes: object) -> Story:
    """The reset of the model's limit has come."""
    return reset_window(story).happens(ResetPassed(), now=RESET, **changes)


def test_an_agent_on_its_fallback_is_offered_its_own_model_once_when_that_resets() -> None:
    """The user preferred it; taking the offer goes on in the same native session."""
    story = back_on_time(on_fallback())
    assert (story.names(last=1), story.now.offer) == (["return.offered"], "ann")
    assert story.effects == [ShowMessage(story.leg)]
    assert render_message(story.now, UTC) == (
        "→ ann can have its own model again. To switch back: press the relay key and type /use ann"
    )
    count = len(story.events)
    assert len(back_on_time(story).events) == count
    story.happens(HandoffAsked("ann"), now=RESET)
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("ann", "")
    story.gone().published()
    assert (story.now.leg.model, story.now.leg.native_id, story.now.offer) == ("", "native-1", "")


def test_without_an_offer_the_agent_at_work_is_not_handed_to_itself() -> None:
    """Who names it twice meant to attach."""
    with pytest.raises(WrongUseError, match="ann is already at work"):
        on_fallback().happens(HandoffAsked("ann"))


@pytest.mark.parametrize("state", ["ready", "busy"])
def test_an_automatic_return_takes_the_own_model_at_the_turns_end(state: str) -> None:
    """As it takes an agent back."""
    story = back_on_time(on_fallback().says(state), return_mode="auto")
    if state == "busy":
        assert story.now.handoff is None
        assert render_message(story.now, UTC) == (
            "→ ann can have its own model again, and goes on with it at the end of this turn."
        )
        story.says("ready", return_mode="auto", now=RESET)
    assert story.effects[-1] == AwaitQuiet(story.leg)
    story.quiet(return_mode="auto", now=RESET)
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("ann", "")
    assert render_message(story.now, UTC) == ("→ ann can have its own model again. Continuing with ann.")


@pytest.mark.parametrize("changes", [{"now": NOW}, {"return_mode": "off"}, {"availability": {}}])
def test_a_model_is_not_offered_early_nor_to_who_wants_none(changes: dict[str, object]) -> None:
    """Another agent's reset also wakes the session; the ledger may not have heard of the limit."""
    story = reset_window(on_fallback())
    count = len(story.events)
    assert len(story.happens(ResetPassed(), **({"now": RESET} | changes)).events) == count


def test_a_model_that_still_rests_is_not_offered() -> None:
    """Its limit was without a reset: the ledger believes it until the user says otherwise."""
    story = on_fallback()
    count = len(story.events)
    assert len(story.happens(ResetPassed(), now=RESET).events) == count


def test_a_limit_without_a_reset_is_over_when_the_ledger_says_so() -> None:
    """The user cleared it by hand."""
    story = working().limit(Scope.MODEL, resets_at=None)
    assert reset_window(story.take_over()).happens(ResetPassed()).now.offer == "ann"


def test_the_own_model_can_be_limited_again_and_is_offered_again() -> None:
    """Every reset is a new offer, and no two models are tried in turns before one."""
    story = back_on_time(on_fallback()).happens(HandoffAsked("ann"), now=RESET)
    story = story.take_over().limit(Scope.MODEL, model="large", resets_at=RESET + timedelta(hours=5))
    assert (story.now.handoff.to_agent, story.now.handoff.model) == ("ann", "small")
    story = reset_window(story.take_over())
    assert story.happens(ResetPassed(), now=RESET).now.offer == ""
    assert story.happens(ResetPassed(), now=RESET + timedelta(hours=5)).now.offer == "ann"


def test_a_limit_of_another_agent_says_nothing_about_this_ones_model() -> None:
    """A signal that came late names who left."""
    story = back_on_time(on_fallback())
    other = replace(story.now, offered="", offer="", limit=replace(story.now.limit, agent="bob"))
    story.session = other
    count = len(story.events)
    assert len(story.happens(ResetPassed(), now=RESET).events) == count
