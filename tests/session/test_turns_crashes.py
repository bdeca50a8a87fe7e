"""Headless turns after a crash: whatever line was the last, the turn comes to an end."""

import pytest

from agent_relay.domain.effects import SpawnLeg, StopLeg
from agent_relay.domain.events.session import LegEnded, LegStarting
from agent_relay.domain.events.work import SessionWaits
from agent_relay.domain.inputs import (
    HandoffAsked,
    PromptTaken,
    Restarted,
    StopAsked,
)
from agent_relay.domain.state import State
from tests.session.turn_story import ABLE, TurnStory


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("leg_lives", [True, False])
@pytest.mark.parametrize("kept", range(1, 19))
def test_a_crash_after_any_line_leads_on_to_the_end_of_the_turn(
    kept: int, *, leg_lives: bool, ends: bool
) -> None:
    """Kill -9 between any two writes: no turn stays open, no agent is left."""
    whole = TurnStory().take(ends=ends).at_work()
    whole.limit().gone().published().spawned()
    whole.happens(PromptTaken(whole.leg))
    whole.done()
    story = whole.cut(kept)
    if story.now.turn is None or story.now.state is State.ENDED:
        return
    story.happens(Restarted(leg_lives)).perform()
    assert story.now.living_leg is None
    assert story.now.turn.outcome in {"done", "failed", "stopped"}
    assert story.now.state in ({State.ENDED} if ends else {State.ENDED, State.READY})


def test_a_leg_that_was_lost_after_it_was_done_is_done() -> None:
    """Its stream had said so, and the journal too."""
    story = TurnStory().take(ends=False).at_work().done()
    story = story.cut(-2).happens(Restarted(leg_lives=False))
    assert (story.now.state, story.now.turn.outcome) == (State.READY, "done")


def test_a_resting_turn_is_ended_by_the_next_daemon() -> None:
    """The agent is stopped, and the session with it."""
    story = TurnStory().rests("bob", "cas").take().at_work()
    story.limit()
    story.happens(Restarted(leg_lives=True))
    assert story.effects[-1] == StopLeg("L1")
    story.gone()
    story = story.cut(-1).happens(Restarted(leg_lives=False))
    assert story.now.state is State.ENDED


def test_a_session_stopped_between_two_turns_stays_stopped() -> None:
    """Half of its end was written: the next daemon writes the other half."""
    story = TurnStory().take(ends=False).at_work().done()
    story.happens(StopAsked("enough"))
    story = story.cut(-1).happens(Restarted(leg_lives=False))
    assert story.now.state is State.ENDED


def test_a_packet_that_was_given_is_noted_once() -> None:
    """The leg was started with it; the line that says so was lost."""
    story = TurnStory().take().at_work()
    story.limit().gone().published().spawned()
    story = story.cut(-1).happens(Restarted(leg_lives=True))
    assert story.names(last=1) == ["handoff.delivered"]
    story.happens(Restarted(leg_lives=True))
    assert story.effects == []
    assert story.now.handoff is not None


@pytest.mark.parametrize("leg_lives", [True, False])
@pytest.mark.parametrize("works", [True, False])
def test_a_crash_after_any_line_of_a_rest_ends_the_turn_as_resting(*, leg_lives: bool, works: bool) -> None:
    """A turn left open would refuse every later one; one told as stopped would not be tried again."""
    whole = TurnStory().rests("bob", "cas") if works else TurnStory().rests("ann", "bob", "cas")
    whole.take()
    if works:
        whole.at_work().limit().gone()
    assert whole.now.state is State.ENDED
    rested = whole.find("session.rested")
    for kept in range(rested, len(whole.events) + 1):
        story = whole.cut(kept)
        if story.now.state is not State.ENDED:
            story.happens(Restarted(leg_lives)).perform()
        assert (story.now.state, story.now.living_leg) == (State.ENDED, None)
        assert story.now.turn.outcome == "resting"


def test_a_session_a_person_went_on_with_rests_for_them() -> None:
    """Its last headless turn is long over: a new daemon must not end what waits for its reset."""
    story = TurnStory().rests("ann", "bob", "cas").take()
    assert story.now.state is State.ENDED
    story.availability["ann"] = ABLE
    story.happens(HandoffAsked("ann")).spawned().says("ready").limit().gone()
    assert (story.now.state, story.now.living_leg) == (State.RESTING, None)
    story.happens(Restarted(leg_lives=False))
    assert story.now.state is State.RESTING


def test_a_session_nobody_was_asked_in_ends_with_its_daemon() -> None:
    """Its first line was written and no other: it would stand among those at work for ever."""
    story = TurnStory()
    story.refold(story.events[:1])
    story.happens(Restarted(leg_lives=False))
    assert story.now.state is State.ENDED
    assert story.now.why == "the daemon was killed before an agent was asked"


@pytest.mark.parametrize("ends", [True, False])
def test_a_turn_whose_leg_was_never_started_is_begun_or_can_be_asked_again(*, ends: bool) -> None:
    """Told as failed, its message would be lost: nobody was asked anything."""
    story = TurnStory().take(ends=ends)
    story.happens(Restarted(leg_lives=False, leg_began=False))
    if ends:
        assert story.names(last=3) == ["leg.ended", "turn.ended", "session.ended"]
        assert (story.now.turn.outcome, story.now.turn.never_began) == ("stopped", True)
        assert story.now.legs[0].how == "unstarted"
        story.take()
        assert story.now.turn.never_began is False
    else:
        assert story.names(last=1) == ["leg.starting"]
        assert story.effects == [SpawnLeg("L1")]


@pytest.mark.parametrize("ends", [True, False])
def test_a_turn_whose_agent_may_have_begun_is_not_asked_again_by_itself(*, ends: bool) -> None:
    """There is a file of its output: what it did until it was lost would be done twice."""
    story = TurnStory().take(ends=ends)
    story.happens(Restarted(leg_lives=False, leg_began=True))
    assert (story.now.turn.outcome, story.now.turn.never_began) == ("failed", False)


def test_a_further_leg_that_was_never_started_is_a_failure_of_its_turn() -> None:
    """Its agent, or another one, had worked on the turn before."""
    story = TurnStory().take(ends=False).at_work()
    story.note(LegEnded("L1", "lost"), SessionWaits(), LegStarting("L9", "ann", 2, headless=True))
    story.happens(Restarted(leg_lives=False, leg_began=False))
    assert (story.now.turn.outcome, story.now.turn.never_began) == ("failed", False)
