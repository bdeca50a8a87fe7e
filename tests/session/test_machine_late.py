"""News that come late, twice, out of order or to nobody: what the state machine makes of them."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import NoteRest, SpawnLeg, StopLeg, WakeAt
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import (
    Answered,
    Delivered,
    DeliverFailed,
    HandoffAsked,
    LegGone,
    PromptTaken,
    Published,
    PublishFailed,
    Restarted,
    SignalFound,
    Spawned,
    StateSeen,
    StopAsked,
)
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.session import Step
from agent_relay.domain.state import State
from agent_relay.domain.values import AgentName, replace
from agent_relay.session.handoffs import begin_handoff
from tests.session.story import NOW, RESET, Story

RETRY = Signal(AgentName("ann"), Kind.RETRY, Scope.TRANSIENT, Evidence(Source.HOOK, "again"), decides=True)


def test_news_of_what_is_over_change_nothing() -> None:
    """Tasks of the daemon answer in any order; a session must not go backwards."""
    story = Story().start().to_step(Step.SPAWNED)
    count = len(story.events)
    story.happens(Published("H-old", "P", 1, "1.json", "1.md", "f"))
    story.happens(PublishFailed("H-old", "no")).happens(Delivered("H-old", story.leg))
    story.happens(DeliverFailed("H-old", story.leg, "no")).happens(Spawned("L1", 1, 2, 3))
    story.happens(PromptTaken("L1")).happens(Answered("L1")).happens(StateSeen("L1", "busy"))
    story.happens(StateSeen(story.leg, "dreaming")).happens(SignalFound(story.leg, RETRY))
    story.happens(SignalFound("L1", replace(RETRY, kind=Kind.LIMIT, scope=Scope.ACCOUNT)))
    story.happens(LegGone("L1", "exited"))
    assert len(story.events) == count


def test_what_an_agent_says_on_its_way_out_changes_nothing() -> None:
    """It still paints while it is asked to quit; hook and transcript both tell of one limit."""
    story = Story().start().says("busy").limit()
    assert len(story.says("ready").events) == len(story.limit().events)
    assert story.now.state is State.HANDING_OFF


def test_the_exact_moment_of_a_reset_that_comes_during_the_handoff_is_noted() -> None:
    """Its words name the minute it is in: offered then, the agent met its limit once more."""
    story = Story().start().says("busy").limit()
    count = len(story.events)
    exact = RESET + timedelta(seconds=18)
    story.limit(resets_at=exact)
    assert [one for one in story.effects if isinstance(one, NoteRest)] == [
        NoteRest("ann", "account", exact, "You've hit it")
    ]
    assert WakeAt(exact) in story.effects
    for other in (RESET, RESET - timedelta(seconds=18), RESET + timedelta(minutes=1), None):
        assert story.limit(resets_at=other).effects == []
    assert story.limit(Scope.BILLING, resets_at=exact).effects == []
    by_hand = Story().start().happens(HandoffAsked("bob"))
    assert by_hand.limit(resets_at=exact).effects == []
    assert len(story.events) == count


def test_a_packet_that_could_not_be_given_is_a_failed_handoff() -> None:
    """The successor goes on without it; the user is told what it should have read."""
    story = Story().start().to_step(Step.SPAWNED).says("ready")
    story.happens(DeliverFailed(story.now.handoff.id, story.leg, "the user was typing"))
    assert story.names(last=1) == ["handoff.failed"]
    assert (story.now.handoff, story.now.failure) == (None, "the user was typing")
    assert story.now.state is State.READY


def test_a_first_prompt_confirms_the_handoff_once() -> None:
    """The agent's own record says that it took the packet, whatever the screen shows."""
    story = Story().start().to_step(Step.DELIVERED)
    story.happens(PromptTaken(story.leg))
    assert story.names(last=2) == ["leg.prompted", "handoff.confirmed"]
    count = len(story.events)
    assert len(story.happens(PromptTaken(story.leg)).events) == count


def test_a_packet_given_to_an_agent_at_work_is_confirmed_at_once() -> None:
    """It was seen working before the delivery was told."""
    story = Story().start().to_step(Step.SPAWNED).says("ready").says("busy")
    story.delivered()
    assert story.names(last=2) == ["handoff.delivered", "handoff.confirmed"]


def test_an_ending_session_is_not_handed_over() -> None:
    """Whoever asked to stop it meant it."""
    story = Story().start().happens(StopAsked("by hand"))
    with pytest.raises(WrongUseError, match="is ending"):
        story.happens(HandoffAsked("bob"))


def test_an_agent_that_left_is_asked_for_again_and_resumes() -> None:
    """No handoff is needed to go on with the same agent."""
    story = Story().start().says("busy").gone("exited")
    story.happens(HandoffAsked("ann"))
    assert story.effects == [SpawnLeg(story.leg)]
    assert (story.now.leg.resumes, story.now.leg.native_id) == (True, "native-1")


def test_a_session_that_never_began_begins_with_whom_one_asks_for() -> None:
    """The daemon may have died between the session's first line and its first leg."""
    story = Story()
    story.happens(HandoffAsked("bob"))
    assert story.effects == [SpawnLeg(story.leg)]
    assert (story.now.agent, story.now.handoff) == ("bob", None)
    assert begin_handoff(Story().now, "bob", "manual", story.world(), why="").bodies == ()


def test_a_session_without_a_leg_is_stopped_at_once_and_only_once() -> None:
    """There is nobody to wait for."""
    story = Story().happens(StopAsked("by hand"))
    assert story.names(last=2) == ["session.stopping", "session.ended"]
    count = len(story.events)
    assert len(story.happens(StopAsked("again")).events) == count


def test_a_limit_of_an_agent_nobody_knows_about_still_hands_over() -> None:
    """It was removed from the configuration while it worked."""
    story = Story().start().says("busy")
    del story.availability["ann"]
    signal = Signal(AgentName("ann"), Kind.LIMIT, Scope.ACCOUNT, Evidence(Source.HOOK, "limit"), decides=True)
    story.happens(SignalFound(story.leg, signal))
    assert story.now.handoff.to_agent == "bob"


def test_a_limit_that_is_over_already_hands_over_all_the_same() -> None:
    """The agent has stopped; a clock that differs by a minute does not make it go on."""
    story = Story().start().says("busy")
    signal = Signal(
        AgentName("ann"), Kind.LIMIT, Scope.ACCOUNT, Evidence(Source.HOOK, "l"), decides=True, resets_at=NOW
    )
    story.happens(SignalFound(story.leg, signal))
    assert story.now.handoff.to_agent == "bob"


def test_the_last_agent_at_its_limit_rests_and_gives_its_handoff_up() -> None:
    """Two limits in a row and nobody left: the session says so and keeps what it has."""
    story = Story(("ann", "bob")).start().to_step(Step.DELIVERED).limit()
    assert story.names(last=2) == ["handoff.failed", "session.rested"]
    assert (story.now.state, story.now.handoff) == (State.RESTING, None)


def test_a_new_daemon_goes_on_with_a_session_that_is_stopping_or_limited() -> None:
    """Kill -9 between a journal line and its effect."""
    story = Story().start().happens(StopAsked("by hand")).happens(Restarted(leg_lives=True))
    assert story.effects == [StopLeg("L1")]
    resting = Story(("ann",)).start().limit()
    resting.happens(Restarted(leg_lives=True), now=NOW + timedelta(minutes=5))
    assert resting.now.state is State.RESTING
    assert [effect.at for effect in resting.effects] == [RESET]
