"""A draft ahead of a limit that is near: once a leg, at the end of a turn, for those who want that."""

from agent_relay.domain.effects import Draft, DraftPacket, ShowMessage
from agent_relay.domain.inputs import SignalFound, StateSeen
from agent_relay.domain.limits import ContextWishes, Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.values import AgentName
from tests.session.story import filling

TOLD = [ShowMessage("L1"), DraftPacket("L1", "bob")]


def near() -> Signal:
    words = Evidence(Source.STATUS_LINE, "92 % of its 5-hour window is used")
    return Signal(AgentName("ann"), Kind.NEAR_LIMIT, Scope.WARNING, words, decides=True)


def test_a_near_limit_is_drafted_for_at_the_end_of_the_turn_for_those_who_want_that() -> None:
    """Nothing can be asked of an agent that has stopped answering; once a leg is enough."""
    story = filling(ContextWishes())
    story.says("busy")
    assert story.happens(SignalFound("L1", near()), draft_near_limit=True).effects == TOLD
    story.happens(StateSeen("L1", "ready"), draft_near_limit=True)
    assert story.effects == [Draft("L1")]
    story.says("busy")
    story.happens(StateSeen("L1", "ready"), draft_near_limit=True)
    assert story.effects == []


def test_a_near_limit_told_between_two_turns_is_drafted_for_at_once() -> None:
    """There may be no other turn."""
    story = filling(ContextWishes()).turn(10)
    assert story.happens(SignalFound("L1", near()), draft_near_limit=True).effects == [
        *TOLD,
        Draft("L1"),
    ]


def test_a_near_limit_costs_nothing_by_default() -> None:
    """What is left of a window is the user's to spend."""
    story = filling(ContextWishes()).turn(10)
    assert story.happens(SignalFound("L1", near())).effects == TOLD
    assert story.turn(10).effects == []


def test_nothing_is_drafted_by_an_agent_that_did_nothing_yet() -> None:
    """There is nothing to hand off."""
    story = filling(ContextWishes())
    assert story.happens(SignalFound("L1", near()), draft_near_limit=True).effects == [ShowMessage("L1")]
