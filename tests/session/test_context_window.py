"""What follows when a context fills up, as tables: one thing at each mark, once, at the end of a turn."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import AwaitQuiet, Compact, Draft, ShowMessage, StopLeg, TellContext
from agent_relay.domain.errors import NobodyAvailableError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import ContextNoted
from agent_relay.domain.inputs import CompactSkipped, HandoffAsked, Restarted
from agent_relay.domain.limits import ContextWishes, Level, Scope
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.fold import fold_event
from agent_relay.session.limits.usage_limits import find_level
from tests.session.story import HANDOFF, NOW, filling

COMPACT = replace(HANDOFF, mode="compact")
ASK = replace(HANDOFF, mode="ask")
CEILING = replace(HANDOFF, ceiling=90_000)
LOW, MIDDLE, ADVISE, DRAFT, ACT = Level.LOW, Level.MIDDLE, Level.ADVISE, Level.DRAFT, Level.ACT


@pytest.mark.parametrize(
    ("used", "room", "wishes", "level"),
    [
        (0, 200_000, HANDOFF, LOW),
        (119_999, 200_000, HANDOFF, LOW),
        (120_000, 200_000, HANDOFF, MIDDLE),
        (139_999, 200_000, HANDOFF, MIDDLE),
        (140_000, 200_000, HANDOFF, ADVISE),
        (160_000, 200_000, HANDOFF, DRAFT),
        (179_999, 200_000, HANDOFF, DRAFT),
        (180_000, 200_000, HANDOFF, ACT),
        (300_000, 200_000, HANDOFF, ACT),
        (59_999, 1_000_000, CEILING, LOW),
        (60_000, 1_000_000, CEILING, MIDDLE),
        (70_000, 1_000_000, CEILING, ADVISE),
        (80_000, 1_000_000, CEILING, DRAFT),
        (90_000, 1_000_000, CEILING, ACT),
        (45_000, 50_000, CEILING, ACT),
        (90_000, 0, CEILING, ACT),
        (70_000, 0, CEILING, ADVISE),
        (500_000, 0, HANDOFF, Level.UNKNOWN),
        (50, 100, replace(HANDOFF, rearm=10, advise=20, draft=40, act=50), ACT),
    ],
)
def test_where_a_context_stands(used: int, room: int, wishes: ContextWishes, level: Level) -> None:
    """A ceiling moves every mark where it is lower than the window, and stands for a window nobody knows."""
    assert find_level(used, room, wishes) is level


def test_each_mark_brings_one_thing_at_the_end_of_a_turn() -> None:
    """Told at 70 %, drafted at 80 %, handed over at 90 % once nobody is typing; never while it works."""
    story = filling()
    assert story.turn(100).effects == []
    story.says("busy")
    assert story.fills(720).effects == [ShowMessage("L1"), TellContext("L1")]
    assert story.says("ready").effects == []
    story.says("busy")
    assert story.fills(820).effects == [TellContext("L1")]
    assert story.says("ready").effects == [Draft("L1")]
    assert story.turn(830).effects == []
    story.says("busy")
    assert story.fills(910).effects == [ShowMessage("L1"), TellContext("L1")]
    assert story.says("ready").effects == [AwaitQuiet("L1")]
    assert story.quiet().effects == [StopLeg("L1")]
    begun = story.now.handoff
    assert begun is not None
    assert (begun.from_agent, begun.to_agent, begun.reason) == ("ann", "ann", "context")
    assert begun.why == "its context is 91 % full (910 of 1,000 tokens)"


def test_nothing_is_done_unless_the_user_wants_it() -> None:
    """Off is the default: not even a line in the journal."""
    story = filling(ContextWishes())
    before = len(story.events)
    assert story.fills(990).effects == []
    assert len(story.events) == before


def test_the_fresh_leg_of_the_same_agent_begins_a_new_conversation() -> None:
    """Going on with the full one would be full at once."""
    story = filling().turn(100).turn(950).quiet().take_over()
    before, after = story.now.legs
    assert (before.agent, after.agent, after.resumes) == ("ann", "ann", False)
    assert after.lane_why == "its context was full"
    assert before.native_id != after.native_id
    assert story.now.context.used == 0


@pytest.mark.parametrize(
    ("to", "taken"), [("same", "ann"), ("next", "bob"), ("cas", "cas"), ("nobody-knows", "ann")]
)
def test_the_user_says_who_takes_over(to: str, taken: str) -> None:
    """Somebody who cannot is passed over; the agent at work can always start afresh."""
    story = filling(replace(HANDOFF, to=to)).turn(950).quiet()
    assert story.now.handoff is not None
    assert story.now.handoff.to_agent == taken


def test_where_nobody_can_start_the_agent_works_on() -> None:
    """A full context is no reason to leave the user without any agent."""
    story = filling()
    story.availability = dict.fromkeys(story.availability, Availability(installed=False))
    assert AwaitQuiet("L1") in story.turn(950).effects
    assert story.quiet().effects == []
    assert story.now.state is State.READY


def test_another_agent_goes_on_with_its_own_conversation_unless_that_was_full() -> None:
    """Only what gave way because it was full stays closed."""
    story = filling(replace(HANDOFF, to="next")).turn(950).quiet().take_over()
    assert story.now.agent == "bob"
    story.says("ready")
    story.happens(HandoffAsked("ann"))
    story.take_over()
    fresh = story.now.legs[-1]
    assert (fresh.agent, fresh.resumes) == ("ann", False)


def test_a_question_or_work_is_waited_out() -> None:
    """Quiet that is told late, when a turn began or a question came up, changes nothing."""
    story = filling().turn(950)
    for state in ("busy", "asking"):
        story.says(state)
        assert story.quiet().effects == []
        assert story.now.handoff is None
    assert story.says("ready").effects == [AwaitQuiet("L1")]


def test_in_compact_mode_the_agent_compacts_and_is_left_alone_until_it_is_low() -> None:
    """Typing the command into every turn would be a loop."""
    story = filling(COMPACT).turn(950)
    assert story.effects == [AwaitQuiet("L1")]
    assert story.quiet().effects == [Compact("L1")]
    story.wait(60)
    assert story.turn(850).effects == []
    assert story.turn(960).effects == []
    assert story.turn(300).effects == []
    assert story.turn(960).effects == [AwaitQuiet("L1")]


def test_somebody_who_began_to_type_is_waited_for_once_more() -> None:
    """A command that was not typed into their line is still to come, cooldown or not."""
    story = filling(COMPACT).turn(950).quiet()
    assert story.happens(CompactSkipped("L1")).effects == [AwaitQuiet("L1")]
    assert story.quiet().effects == [Compact("L1")]
    assert story.count("context.compacting") == 2


def test_a_leg_that_is_over_is_spared_nothing() -> None:
    """Its successor's context is another one."""
    story = filling(COMPACT).turn(950).quiet()
    story.gone()
    assert story.happens(CompactSkipped("L1")).effects == []


def test_no_document_is_drafted_where_nothing_is_handed_over() -> None:
    """It costs a part of the user's quota."""
    for wishes in (COMPACT, ASK):
        assert filling(wishes).turn(850).effects == []


def test_in_ask_mode_the_user_is_told_and_nothing_is_done() -> None:
    """Until they say /handoff, which hands over to a fresh start then."""
    story = filling(ASK)
    story.says("busy")
    assert story.fills(950).effects == [ShowMessage("L1"), TellContext("L1")]
    assert story.says("ready").effects == []
    assert story.quiet().effects == []
    assert story.happens(HandoffAsked("", focus="the parser")).effects == [StopLeg("L1")]
    begun = story.now.handoff
    assert begun is not None
    assert (begun.to_agent, begun.reason, begun.focus) == ("ann", "context", "the parser")


def test_a_handoff_by_name_is_what_it_says() -> None:
    """Whoever names an agent means that one."""
    story = filling(ASK).turn(950)
    story.happens(HandoffAsked("cas"))
    assert story.now.handoff is not None
    assert (story.now.handoff.to_agent, story.now.handoff.reason) == ("cas", "manual")


def test_where_nobody_can_take_over_a_full_context_the_user_hears_it() -> None:
    """The error is the one of any handoff."""
    story = filling(ASK).turn(950)
    story.availability = dict.fromkeys(story.availability, Availability(installed=False))
    with pytest.raises(NobodyAvailableError):
        story.happens(HandoffAsked(""))


def test_nobody_is_told_twice_on_the_way() -> None:
    """A context that swings about a mark must not fill the screen with lines."""
    story = filling(ASK)
    story.says("busy")
    said = [
        ShowMessage("L1") in story.fills(used).effects for used in (720, 650, 720, 820, 720, 910, 820, 910)
    ]
    assert said == [True, False, False, False, False, True, False, False]
    story.fills(500)
    assert story.fills(710).effects == [ShowMessage("L1"), TellContext("L1")]


def test_a_jump_over_all_marks_is_one_line_one_draft_and_one_wait() -> None:
    """One large file can fill a context in a single turn."""
    story = filling()
    story.says("busy")
    assert story.fills(960).effects == [ShowMessage("L1"), TellContext("L1")]
    assert story.says("ready").effects == [Draft("L1"), AwaitQuiet("L1")]


def test_another_models_window_is_reckoned_anew() -> None:
    """800 of 1,000 tokens is much, of 10,000 it is nothing."""
    story = filling(ASK).turn(950)
    assert story.now.context.level is ACT
    story.turn(960, room=10_000)
    assert story.now.context.level is LOW
    assert not story.now.context.is_spent


def test_a_new_daemon_waits_for_the_quiet_moment_again() -> None:
    """The one that was killed waited for it; a draft that was begun is not begun twice."""
    story = filling().turn(950)
    story.happens(Restarted(leg_lives=True))
    assert story.effects == [AwaitQuiet("L1")]
    assert story.count("draft.begun") == 1


def test_a_limit_goes_before_a_full_context() -> None:
    """The handoff that a limit brings is the one that counts."""
    story = filling().turn(950)
    story.limit(Scope.ACCOUNT)
    assert story.quiet().effects == []
    assert story.now.handoff is not None
    assert story.now.handoff.reason == "rate_limit"
    assert story.fills(990, at=story.moment + timedelta(minutes=1)).effects == []


def test_a_damaged_line_of_the_journal_changes_nothing() -> None:
    """A moment that is none, or a leg nobody knows, must not stop a session from being read."""
    story = filling().turn(300)
    for noted in (
        ContextNoted("L1", 990, 1000, "act", "yesterday"),
        ContextNoted("L1", 990, 1000, "act", "2026-07-26T18:00:00"),
        ContextNoted("L1", 990, 1000, "brimming", NOW.isoformat()),
        ContextNoted("L9", 990, 1000, "act", NOW.isoformat()),
    ):
        after = fold_event(story.now, Event(story.now.number + 1, story.moment, 1, noted))
        assert after is not None
        assert after.context == story.now.context
