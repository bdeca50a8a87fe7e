"""Headless turns: begun, handed on at a limit, over; and what the session is between two of them."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import NoteRest, PublishPacket, SpawnLeg, StopLeg, WakeAt
from agent_relay.domain.errors import TurnOverError, WrongUseError
from agent_relay.domain.inputs import (
    CancelAsked,
    ContextFilled,
    HandoffAsked,
    LegGone,
    PromptTaken,
    Published,
    ResetPassed,
    StopAsked,
    TurnAsked,
)
from agent_relay.domain.limits import Scope
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from tests.session.story import HANDOFF, NOW, RESET, Story
from tests.session.turn_story import ABLE, TurnStory


def test_a_turn_is_one_leg_and_the_session_ends_with_it() -> None:
    """A script's run leaves nothing behind that waits for anybody."""
    story = TurnStory().take()
    assert story.effects == [SpawnLeg("L1")]
    assert (story.now.state, story.now.leg.headless) == (State.STARTING, True)
    story.at_work()
    assert story.now.state is State.BUSY
    story.done()
    assert story.names(last=3) == ["turn.ended", "leg.ended", "session.ended"]
    assert (story.now.state, story.now.turn.outcome) == (State.ENDED, "done")


def test_between_two_turns_the_session_waits_and_goes_on_in_the_same_conversation() -> None:
    """The next turn is a new process that resumes what the agent said before."""
    story = TurnStory().take(ends=False).at_work().done()
    assert (story.now.state, story.now.living_leg) == (State.READY, None)
    assert story.names(last=1) == ["session.waits"]
    story.take("and now?", ends=False)
    assert (story.now.leg.resumes, story.now.leg.native_id) == (True, "native-1")
    assert (story.now.turn.prompt, story.now.turn.taken) == ("and now?", 1)


def test_people_may_open_the_conversation_on_a_screen() -> None:
    """What was begun without a screen can be gone on with on one."""
    story = TurnStory().take(ends=False).at_work().done()
    story.happens(HandoffAsked("ann"))
    assert (story.now.leg.resumes, story.now.leg.headless) == (True, False)


def test_a_turn_that_has_ended_is_not_handed_over() -> None:
    """Who passes a turn on as it ends meant its answer, not a conversation on a screen of its own."""
    for ends in (True, False):
        story = TurnStory().take(ends=ends).at_work().done()
        with pytest.raises(TurnOverError):
            story.happens(HandoffAsked("bob", turn=True))
    story = TurnStory().take().at_work().happens(HandoffAsked("bob", turn=True))
    assert story.effects[-1] == StopLeg("L1")


def test_a_turn_is_not_begun_while_one_is_under_way() -> None:
    """Two processes in one conversation would answer each other."""
    with pytest.raises(WrongUseError, match="is at work"):
        TurnStory().take().take()


def test_a_limit_hands_the_turn_on_and_the_successor_needs_no_screen() -> None:
    """Confirmed is the handoff when the successor works, not when it was started."""
    story = TurnStory().take().at_work()
    story.limit()
    assert story.effects[-1] == StopLeg("L1")
    story.gone()
    assert isinstance(story.effects[0], PublishPacket)
    story.published().spawned()
    assert story.names(last=2) == ["leg.started", "handoff.delivered"]
    assert (story.now.leg.agent, story.now.leg.headless) == ("bob", True)
    story.happens(PromptTaken(story.leg))
    assert story.names(last=2) == ["leg.busy", "handoff.confirmed"]
    story.done()
    assert (story.now.turn.outcome, story.now.turn.taken, len(story.now.done)) == ("done", 2, 1)


def test_a_turn_too_short_to_be_seen_at_work_confirms_its_handoff() -> None:
    """An agent may answer before anybody read that it was asked."""
    story = TurnStory().take().at_work()
    story.limit().gone().published()
    story.done()
    assert story.names(last=5) == [
        "handoff.delivered",
        "handoff.confirmed",
        "turn.ended",
        "leg.ended",
        "session.ended",
    ]


def test_a_successor_that_fails_before_it_works_gives_way() -> None:
    """Its packet was not taken up: the next one gets it."""
    story = TurnStory().take().at_work()
    story.limit().gone().published().spawned()
    story.broke()
    story.happens(Published(story.now.handoff.id, "P2", 2, "2.json", "2.md", "f")).spawned().broke()
    story.happens(Published(story.now.handoff.id, "P3", 3, "3.json", "3.md", "f"))
    assert story.now.leg.agent == "cas"


def test_a_failed_agent_is_a_failed_turn() -> None:
    """Only a limit is a reason for somebody else."""
    story = TurnStory().take().at_work().broke("it fell over")
    assert (story.now.state, story.now.turn.outcome, story.now.turn.why) == (
        State.ENDED,
        "failed",
        "it fell over",
    )
    silent = TurnStory().take().at_work()
    silent.happens(LegGone(silent.leg, "exited", 0))
    assert silent.now.turn.why == "ann exited before its turn was over"


def test_a_turn_whose_agent_could_not_be_started_has_failed() -> None:
    """The reason is what the user has to mend."""
    story = TurnStory().take()
    story.happens(LegGone(story.leg, "unstarted", why="ann is not installed"))
    assert (story.now.state, story.now.turn.outcome) == (State.ENDED, "failed")


def test_a_stopped_turn_is_neither_done_nor_failed() -> None:
    """Whoever interrupts it knows why."""
    story = TurnStory().take().at_work()
    story.happens(StopAsked("interrupted")).gone("exited", 130)
    assert (story.now.state, story.now.turn.outcome) == (State.ENDED, "stopped")
    waiting = TurnStory().take(ends=False).at_work().done()
    waiting.happens(StopAsked("enough"))
    assert (waiting.now.state, waiting.now.turn.outcome) == (State.ENDED, "done")


def test_an_agent_that_rests_is_not_asked_and_the_next_one_is() -> None:
    """What a person insists on with --yes a script does not mean by naming its favourite."""
    story = TurnStory().rests("ann").take()
    assert story.now.leg.agent == "bob"
    alone = TurnStory().rests("ann", "bob", "cas").take()
    assert alone.names(last=3) == ["session.rested", "turn.ended", "session.ended"]
    assert (alone.now.turn.outcome, len(alone.now.skipped)) == ("resting", 3)


def test_who_is_named_is_believed_to_be_signed_in() -> None:
    """A key may stand where no adapter looks."""
    story = TurnStory()
    story.availability["ann"] = replace(ABLE, signed_in=False)
    assert story.take().now.leg.agent == "ann"


def test_another_agent_takes_the_next_turn_by_a_packet() -> None:
    """`run bob --continue` of ann's session: bob was not there."""
    story = TurnStory().take().at_work().done().take("go on", agent="bob")
    assert (story.now.handoff.to_agent, story.now.handoff.reason) == ("bob", "manual")
    assert isinstance(story.effects[0], PublishPacket)
    resting = TurnStory().take().at_work().done().rests("ann").take("go on")
    assert (resting.now.handoff.to_agent, resting.now.handoff.reason) == ("bob", "rate_limit")


def test_a_full_agent_begins_its_next_turn_afresh_where_the_user_wants_that() -> None:
    """Nobody watches a headless conversation fill up; its next prompt is where it can change hands."""
    story = TurnStory().take(ends=False).at_work()
    story.happens(ContextFilled(story.leg, 950, 1000, NOW + timedelta(seconds=1)), context=HANDOFF)
    story.done()
    story.happens(TurnAsked("ann", "go on", ends=False), context=HANDOFF)
    assert (story.now.handoff.to_agent, story.now.handoff.reason) == ("ann", "context")
    story.published()
    assert (story.now.legs[-1].agent, story.now.legs[-1].resumes) == ("ann", False)
    assert story.now.legs[-1].headless


@pytest.mark.parametrize(("mode", "used"), [("ask", 950), ("handoff", 850)])
def test_else_it_goes_on_in_the_same_conversation(mode: str, used: int) -> None:
    """Below the mark, and where the user decides."""
    story = TurnStory().take(ends=False).at_work()
    wishes = replace(HANDOFF, mode=mode)
    story.happens(ContextFilled(story.leg, used, 1000, NOW + timedelta(seconds=1)), context=wishes)
    story.done()
    story.happens(TurnAsked("ann", "go on", ends=False), context=wishes)
    assert story.now.handoff is None
    assert story.now.legs[-1].resumes


def test_agents_that_need_a_screen_are_passed_over() -> None:
    """They would wait for somebody to type."""
    story = TurnStory()
    story.availability["bob"] = replace(ABLE, capabilities=frozenset())
    story.take().at_work()
    story.limit()
    assert story.now.handoff.to_agent == "cas"
    assert story.now.handoff.skipped == ("bob: its adapter does not declare headless",)


def test_when_all_rest_the_agent_is_stopped_and_the_session_ends() -> None:
    """One that waits out its limit by itself would go on hours later with nobody there."""
    story = TurnStory().rests("bob", "cas").take().at_work()
    story.limit()
    assert story.now.state is State.RESTING
    assert story.effects[-1] == StopLeg("L1")
    count = len(story.events)
    exact = RESET + timedelta(seconds=18)
    assert NoteRest("ann", "account", exact, "You've hit it") in story.limit(resets_at=exact).effects
    assert len(story.events) == count
    story.limit(scope=Scope.BILLING)
    assert story.now.state is State.RESTING
    story.gone()
    assert (story.now.state, story.now.turn.outcome) == (State.ENDED, "resting")
    assert story.now.rested_until == RESET.isoformat()


def test_a_session_that_waits_for_turns_rests_with_its_turn_open() -> None:
    """Whoever began it decides whether to wait."""
    story = TurnStory().rests("bob", "cas").take(ends=False).at_work()
    story.limit()
    assert story.effects[-2:] == [WakeAt(RESET), StopLeg("L1")]
    story.gone()
    assert (story.now.state, story.now.turn.outcome) == (State.RESTING, "")
    story.availability["ann"] = ABLE
    story.happens(ResetPassed(), resume_at_reset=True)
    story.published()
    assert (story.now.leg.agent, story.now.leg.headless) == ("ann", True)


@pytest.mark.parametrize("scope", [Scope.ACCOUNT, Scope.MODEL])
def test_a_turn_takes_no_more_legs_than_it_may(scope: Scope) -> None:
    """`-n 1` is one attempt; another model of the same agent is one more."""
    story = TurnStory().take(most=1).at_work()
    story.ids += 10
    story.limit(scope=scope)
    assert story.now.handoff is None
    assert story.now.skipped == ("this turn may take no more than 1 leg",)
    two = TurnStory().take(most=2).at_work()
    two.limit().gone().published().spawned().limit().gone()
    assert two.now.skipped == ("this turn may take no more than 2 legs",)
    unknown = TurnStory(("ann", "bob")).take(most=1).at_work()
    del unknown.availability["ann"]
    unknown.limit()
    assert unknown.now.rested_until == RESET.isoformat()


def test_a_handoff_that_was_called_off_holds_the_turn() -> None:
    """The person who did that decides how it goes on."""
    story = TurnStory().take().at_work()
    story.limit()
    story.happens(CancelAsked(story.now.handoff.id)).gone()
    story.published()
    assert (story.now.state, story.now.is_held) == (State.RESTING, True)


def test_news_of_a_leg_that_is_leaving_confirm_nothing() -> None:
    """Its prompt is heard while its predecessor's handoff is under way."""
    story = TurnStory().take()
    story.spawned().limit()
    story.happens(PromptTaken(story.leg))
    assert story.names(last=1) == ["leg.prompted"]


def test_a_turn_in_a_session_of_people_is_refused_while_they_work() -> None:
    """A script does not type into somebody's terminal."""
    story = Story().start()
    with pytest.raises(WrongUseError):
        story.happens(TurnAsked("ann", "paint it"))


def test_the_turns_of_a_chat_need_no_packet() -> None:
    """What the others said stands in the prompt; each goes on in its own conversation."""
    story = TurnStory().take_seat("ann", "bob").at_work().done(said="one").take_seat("bob", "ann")
    assert (story.now.leg.agent, story.now.leg.resumes, story.now.handoff) == ("bob", False, None)
    story.at_work().done().take_seat("ann", "bob")
    assert (story.now.leg.agent, story.now.leg.resumes, story.now.leg.native_id) == ("ann", True, "native-1")
    assert [line.body.said for line in story.events if line.body.name == "turn.ended"] == ["one", ""]


def test_a_turn_of_a_chat_is_not_taken_over_by_who_has_their_own() -> None:
    """Nobody answers themselves; the packet goes to somebody else."""
    story = TurnStory().take_seat("ann", "bob").at_work()
    story.limit()
    assert story.now.handoff.to_agent == "cas"
    alone = TurnStory(("ann", "bob")).take_seat("ann", "bob").at_work()
    alone.limit().gone()
    assert (alone.now.state, alone.now.turn.outcome) == (State.ENDED, "resting")
    rests = TurnStory().rests("ann").take_seat("ann", "bob")
    assert rests.now.leg.agent == "cas"
