"""The session's state machine after a crash: the journal leads on to one successor."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import (
    DeliverTask,
    NoteRest,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.inputs import (
    HandoffAsked,
    Restarted,
    TaskGiven,
)
from agent_relay.domain.session import Step
from agent_relay.domain.state import State
from tests.session.story import RESET, Story


@pytest.mark.parametrize("leg_lives", [True, False])
@pytest.mark.parametrize("kept", range(2, 19))
def test_a_crash_after_any_journal_line_leads_on_to_one_successor(kept: int, *, leg_lives: bool) -> None:
    """Kill -9 between any two writes: the next daemon finishes the saga or leaves the source in charge."""
    whole = Story().start().says("busy").to_step(Step.DELIVERED).says("busy")
    story = whole.cut(kept).happens(Restarted(leg_lives)).perform()
    assert story.now.state in (State.STARTING, State.READY, State.BUSY, State.ENDED)
    living = [leg for leg in story.now.legs if not leg.is_over]
    assert len(living) <= 1
    if story.now.handoff is not None:
        assert story.now.handoff.step is Step.SPAWNED
        assert living


def test_the_task_is_given_once_to_the_first_leg_when_it_is_ready() -> None:
    """`--task` must reach the agent exactly once, also when the daemon dies in between."""
    story = Story(task="fix it")
    story.start()
    assert story.effects == [DeliverTask("L1")]
    assert story.happens(Restarted(leg_lives=True)).effects == [DeliverTask("L1")]
    assert story.says("busy").happens(TaskGiven("L1")).names(last=2) == ["leg.busy", "task.delivered"]
    assert story.says("ready").effects == []
    assert story.happens(TaskGiven("L1")).names(last=1) == ["leg.ready"]


def test_a_task_is_not_believed_to_be_given_because_the_agent_was_busy() -> None:
    """Some are busy with their tools at first; a daemon that died meanwhile had not typed it."""
    story = Story(task="fix it").start().says("busy")
    assert story.happens(Restarted(leg_lives=True)).effects == []
    assert story.says("ready").effects == [DeliverTask("L1")]


def test_a_leg_that_is_watched_again_late_is_given_what_it_waits_for() -> None:
    """Its holder did not answer at once: what was to be delivered then found nobody."""
    story = Story(task="fix it").start()
    assert story.says("ready").effects == [DeliverTask("L1")]
    assert story.names(last=1) == ["leg.ready"]
    story.says("busy")
    assert story.says("busy").effects == []


@pytest.mark.parametrize("step", [Step.BEGUN, Step.STOPPED, Step.SPAWNING, Step.SPAWNED])
def test_a_limit_whose_daemon_died_is_noted_by_the_next_one(step: Step) -> None:
    """The ledger said that nobody rests, and other sessions began with the agent that had given way."""
    story = Story().start().says("busy").to_step(step).happens(Restarted(leg_lives=True))
    assert story.effects[0] == NoteRest("ann", "account", RESET, "You've hit it")


def test_a_limit_that_was_all_the_journal_had_time_for_is_noted() -> None:
    """The daemon died between the line that says it and what follows from it."""
    whole = Story().start().says("busy").limit()
    seen = next(event.number for event in whole.events if event.body.name == "signal.seen")
    whole.refold(whole.events[:seen]).happens(Restarted(leg_lives=True))
    assert whole.effects[0] == NoteRest("ann", "account", RESET, "You've hit it")


def test_a_limit_at_which_nobody_was_left_is_noted_by_the_next_daemon_if_it_is_new() -> None:
    """Killed between the rest's line and its ledger, it let everybody be told that the agent is back."""
    story = Story(roster=("ann",)).start().says("busy").limit()
    assert story.now.state is State.RESTING
    noted = NoteRest("ann", "account", RESET, "You've hit it")
    assert noted in story.happens(Restarted(leg_lives=True)).effects
    later = story.now.updated_at + timedelta(minutes=2)
    assert noted not in story.happens(Restarted(leg_lives=True), now=later).effects


def test_a_limit_of_before_is_not_noted_again() -> None:
    """What the user has cleared since would come back with every new daemon."""
    working = (
        Story().start().says("busy").to_step(Step.DELIVERED).says("busy").happens(Restarted(leg_lives=True))
    )
    assert working.effects == [WakeAt(RESET)]
    by_hand = Story().start().happens(HandoffAsked("bob")).happens(Restarted(leg_lives=True))
    assert by_hand.effects == [StopLeg("L1")]


def test_a_session_whose_first_leg_was_never_started_is_over_and_says_why() -> None:
    """Only who asks again has the environment it is to start in; no agent was lost."""
    story = Story()
    story.note_beginning("ann")
    story.happens(Restarted(leg_lives=False))
    assert (story.now.state, story.now.legs[0].how) == (State.ENDED, "unstarted")
    assert story.now.why == "the daemon was killed before an agent was asked"
