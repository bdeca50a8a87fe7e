"""The session's state machine: what follows from what happens, and from a crash between any two lines."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import (
    DeliverPacket,
    DraftPacket,
    Effect,
    NoteRest,
    PublishPacket,
    ShowMessage,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events.session import Event, SessionCreated, SessionEnded, Unknown
from agent_relay.domain.inputs import (
    HandoffAsked,
    PublishFailed,
    ResetPassed,
    StopAsked,
)
from agent_relay.domain.limits import Scope
from agent_relay.domain.session import Step
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from agent_relay.session.fold import ImpossibleEventError, fold_event
from tests.session.story import HERE, NOW, RESET, Story


def test_a_limit_walks_the_whole_saga_to_a_working_successor() -> None:
    """The main job: each step is journalled before the next effect is asked for."""
    story = Story().start().says("busy").limit()
    assert story.now.state is State.HANDING_OFF
    assert story.effects == [NoteRest("ann", "account", RESET, "You've hit it"), WakeAt(RESET), StopLeg("L1")]
    story.gone()
    assert story.effects == [PublishPacket(story.now.handoff.id)]
    story.published()
    assert story.names(last=2) == ["packet.published", "leg.starting"]
    assert story.effects == [SpawnLeg(story.leg)]
    assert (story.now.agent, story.now.generation, story.now.state) == ("bob", 2, State.STARTING)
    story.spawned().says("ready")
    assert story.effects == [DeliverPacket(story.now.handoff.id, story.leg)]
    story.delivered().says("busy")
    assert story.now.handoff is None
    assert [handoff.to_agent for handoff in story.now.done] == ["bob"]


@pytest.mark.parametrize(
    ("scope", "said"),
    [(Scope.TRANSIENT, []), (Scope.WARNING, [ShowMessage("L1"), DraftPacket("L1", "bob")])],
)
def test_only_limits_that_last_hand_the_session_over(scope: Scope, said: list[Effect]) -> None:
    """A retry or a warning must never start another agent by itself."""
    story = Story().start().says("busy").limit(scope)
    assert story.now.state is State.BUSY
    assert story.effects == said


def test_a_signal_that_does_not_decide_is_journalled_and_nothing_else() -> None:
    """Screen text can be forged by the agent: it is evidence, not an order."""
    story = Story().start().says("busy").limit(decides=False)
    assert story.names(last=1) == ["signal.seen"]
    assert story.effects == []


def test_nobody_available_rests_the_session_and_leaves_the_agent_in_charge() -> None:
    """Stopping the only agent would help nobody; the user is told who rests until when."""
    story = Story(("ann", "bob"))
    story.availability["bob"] = Availability(
        installed=True, resting=True, rests_until=NOW + timedelta(hours=1)
    )
    story.start().limit()
    assert story.now.state is State.RESTING
    assert story.now.rested_until == "2026-11-21T19:20:00+00:00"
    assert story.now.skipped == ("bob: rests until 19:20",)
    assert story.effects[-1] == WakeAt(NOW + timedelta(hours=1))
    story.happens(ResetPassed())
    assert (story.now.state, story.effects) == (State.RESTING, [WakeAt(RESET)])
    story.availability["ann"] = HERE
    story.happens(ResetPassed())
    assert story.now.state is State.READY


def test_a_session_whose_agent_left_while_resting_goes_on_at_the_reset_only_when_told_to() -> None:
    """`resume_at_reset` is consent to work unattended."""
    story = Story(("ann", "bob"))
    story.availability["bob"] = Availability(installed=True, resting=True, rests_until=RESET)
    story.start().limit().gone("exited")
    assert story.now.state is State.RESTING
    story.availability["bob"] = HERE
    assert story.happens(ResetPassed()).effects == []
    story.happens(ResetPassed(), resume_at_reset=True)
    assert story.now.handoff.to_agent == "bob"
    assert story.effects == [PublishPacket(story.now.handoff.id)]


def test_a_successor_that_ends_before_it_is_ready_gets_a_second_try_then_gives_way() -> None:
    """One crash is bad luck; a broken installation must not strand the user."""
    story = Story().start().to_step(Step.SPAWNED).gone("exited", 127)
    assert story.names(last=4) == ["leg.ended", "handoff.failed", "handoff.begun", "handoff.stopped"]
    assert story.now.handoff.to_agent == "bob"
    story.published().gone("unstarted")
    assert story.now.handoff.to_agent == "cas"
    assert story.effects == [PublishPacket(story.now.handoff.id)]
    story.published().gone("unstarted").published().gone("unstarted")
    assert story.now.state is State.RESTING
    assert story.now.skipped == (
        "cas: could not take over just now",
        "ann: rests until 21:20",
        "bob: could not take over just now",
    )


def test_a_successor_that_hits_its_own_limit_at_once_is_replaced() -> None:
    """All windows may be nearly empty; the packet travels on."""
    story = Story().start().to_step(Step.DELIVERED).limit()
    assert story.now.handoff.to_agent == "cas"
    assert story.effects[-1] == StopLeg(story.now.handoff.from_leg)


def test_a_user_who_quits_a_ready_successor_ends_the_session() -> None:
    """Quitting is not failing."""
    story = Story().start().to_step(Step.SPAWNED).says("ready").gone("exited", 0)
    assert story.now.state is State.ENDED


def test_asking_by_hand_refuses_a_resting_agent_unless_forced() -> None:
    """The reason names the rest; a person may know better."""
    story = Story().start()
    story.availability["bob"] = Availability(installed=True, resting=True, rests_until=RESET)
    with pytest.raises(NobodyAvailableError, match="bob: rests until 21:20"):
        story.happens(HandoffAsked("bob"))
    story.happens(HandoffAsked("bob", force=True, focus="the parser"))
    assert (story.now.handoff.to_agent, story.now.handoff.focus) == ("bob", "the parser")


def test_no_name_means_the_next_of_the_order_who_can() -> None:
    """`/handoff` alone is what people type when it has to go quickly."""
    story = Story().start()
    story.availability["bob"] = Availability(installed=False)
    story.happens(HandoffAsked(""))
    assert (story.begun.from_agent, story.begun.to_agent, story.begun.reason) == ("ann", "cas", "manual")
    assert story.effects == [StopLeg("L1")]
    with pytest.raises(NobodyAvailableError, match="there is nobody else in the order"):
        Story(("ann",)).start().happens(HandoffAsked(""))


def test_asking_for_the_agent_at_work_or_during_a_handoff_is_wrong_use() -> None:
    """Two successors at once must be impossible."""
    story = Story().start()
    with pytest.raises(WrongUseError, match="already at work"):
        story.happens(HandoffAsked("ann"))
    story.limit()
    with pytest.raises(WrongUseError, match="under way"):
        story.happens(HandoffAsked("cas"))


def test_an_ended_session_goes_on_with_another_agent_without_anyone_to_stop() -> None:
    """Sessions survive their agents."""
    story = Story().start().gone("exited", 0)
    assert story.now.state is State.ENDED
    story.happens(HandoffAsked("bob"))
    assert story.effects == [PublishPacket(story.now.handoff.id)]


def test_a_packet_that_cannot_be_published_ends_the_session_saying_why() -> None:
    """The predecessor is gone; the journal keeps everything needed to go on later."""
    story = Story().start().to_step(Step.STOPPED)
    story.happens(PublishFailed(story.now.handoff.id, "the disk is full"))
    assert (story.now.state, story.now.why) == (State.ENDED, "the disk is full")


def test_stopping_ends_the_leg_and_then_the_session() -> None:
    """No orphan agent."""
    story = Story().start().happens(StopAsked("by hand"))
    assert story.effects == [StopLeg("L1")]
    assert story.gone().now.state is State.ENDED


def test_a_successor_seen_ready_before_it_is_said_to_live_still_gets_its_packet() -> None:
    """The screen and the spawn are told by different tasks, in either order."""
    story = Story().start().to_step(Step.SPAWNING).says("ready")
    assert story.effects == []
    assert story.spawned().effects == [DeliverPacket(story.now.handoff.id, story.leg)]


def test_an_event_no_arrow_allows_is_a_loud_bug() -> None:
    """States, not flags: there is one table and nothing slips past it."""
    story = Story()
    event = Event(2, NOW, 0, SessionCreated("S", "/r", "/r"))
    with pytest.raises(ImpossibleEventError, match=r"session\.created while starting"):
        fold_event(story.session, event)


def test_a_journal_begins_with_its_session() -> None:
    """A file whose beginning is lost must not become another session; a newer version's lines may lead."""
    ended = Event(1, NOW, 0, SessionEnded("over"))
    with pytest.raises(ImpossibleEventError, match=r"session\.ended before session\.created"):
        fold_event(None, ended)
    assert fold_event(None, Event(1, NOW, 0, Unknown("later.event", {}))) is None
