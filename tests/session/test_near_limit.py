"""A limit that is close: the person at the terminal is told of each usage window once, and work goes on."""

from datetime import timedelta

import pytest

from agent_relay.domain.effects import DraftPacket, ShowMessage
from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.inputs import HandoffAsked, Restarted
from agent_relay.domain.limits import Evidence, FullWindow, Kind, Scope, Source
from agent_relay.domain.session import PreparedSuccessor
from agent_relay.domain.state import State
from agent_relay.session.decision import Availability
from agent_relay.session.fold import fold_event
from tests.session.story import HERE, NOW, RESET, Story
from tests.session.turn_story import TurnStory

HOOK = Evidence(Source.HOOK, "You've used 92% of your session limit")
TOLD = [ShowMessage("L1"), DraftPacket("L1", "bob")]
SCREEN = Evidence(Source.SCREEN, "92% of your session limit used")


def warn(story: Story, **changes: object) -> Story:
    """The agent at work says that it is near a limit."""
    return story.limit(Scope.WARNING, **({"kind": Kind.NEAR_LIMIT, "evidence": HOOK} | changes))


def warned() -> Story:
    """A session whose agent said so a moment ago, of the window that ends at RESET."""
    return warn(Story().start().says("busy"))


def test_the_user_is_told_and_the_agent_works_on() -> None:
    """They may want to hand over in good time; nothing has stopped yet."""
    story = warned()
    assert story.effects == TOLD
    assert (story.now.state, story.now.handoff, story.now.limit) == (State.BUSY, None, None)
    assert (story.now.near.text, story.now.near.until) == (HOOK.text, RESET.isoformat())


@pytest.mark.parametrize(
    "again",
    [
        {"evidence": SCREEN},
        {"evidence": SCREEN, "resets_at": RESET + timedelta(minutes=9)},
        {"evidence": SCREEN, "resets_at": None},
    ],
)
def test_a_window_is_told_of_once_whoever_says_it_next(again: dict[str, object]) -> None:
    """Hook, transcript and screen all say it, with resets rounded each in its own way, or none."""
    story = warn(warned(), **again)
    assert story.effects == []
    assert story.names(last=1) == ["signal.seen"]


def test_a_reset_that_is_learnt_later_tells_nothing_new_but_is_kept() -> None:
    """The screen named no reset; the record that does is of the same window, and tells the next one apart."""
    story = warn(Story().start().says("busy"), resets_at=None)
    assert story.effects == TOLD
    assert warn(story).effects == []
    assert warn(story, resets_at=RESET + timedelta(days=5)).effects == TOLD
    assert [warning.until for warning in story.now.warned] == [
        "2026-11-21T21:20:00+00:00",
        "2026-11-26T21:20:00+00:00",
    ]


def test_the_next_window_and_another_window_are_told_of() -> None:
    """The weekly limit is another thing than the one of the next five hours, and so is tomorrow's."""
    story = warn(warned(), resets_at=RESET + timedelta(days=5))
    assert story.effects == TOLD
    assert warn(story, model="large").effects == TOLD
    assert warn(story, resets_at=RESET).effects == []
    after = RESET + timedelta(hours=1)
    assert warn(story, resets_at=RESET + timedelta(hours=5)).effects == TOLD
    signal = SignalSeen("L1", "ann", "near-limit", "warning", "hook", "92%", decides=True)
    kept = fold_event(story.now, Event(99, after, 1, signal)).warned
    assert [warning.until for warning in kept if warning.until] == [
        "2026-11-26T21:20:00+00:00",
        "2026-11-22T02:20:00+00:00",
    ]


def test_a_window_that_was_told_of_is_over_at_its_reset() -> None:
    """A clock that stands on the same hour the next day must be believed."""
    story = warn(Story().start().says("busy"), resets_at=NOW)
    assert warn(story, resets_at=NOW + timedelta(minutes=5)).effects == TOLD


def test_the_next_agent_is_chosen_and_briefed_ahead() -> None:
    """Asked at the limit, the agent that stopped answering would tell nothing any more."""
    story = warned()
    assert story.names(last=2) == ["signal.seen", "successor.chosen"]
    assert story.now.prepared == PreparedSuccessor("bob")
    full = Availability(installed=True, full=FullWindow("weekly window", RESET))
    skips = Story()
    skips.availability |= {"bob": full}
    warn(skips.start().says("busy"))
    assert skips.now.prepared == PreparedSuccessor(
        "cas", (f"bob: its weekly window is used up until {RESET:%H:%M}",)
    )


def test_nobody_who_could_take_over_is_told_as_well() -> None:
    """It is the moment to sign somebody in."""
    story = Story(("ann",))
    warn(story.start().says("busy"))
    assert (story.effects, story.now.prepared) == ([ShowMessage("L1")], PreparedSuccessor(""))


def test_an_agent_that_was_asked_nothing_yet_has_nothing_to_hand_over() -> None:
    """Its successor would be told what the user typed, and that nobody has."""
    assert warn(Story().start()).effects == [ShowMessage("L1")]


def test_a_choice_ends_with_its_leg() -> None:
    """It was made for the agent that gave way."""
    story = warned().happens(HandoffAsked("bob")).gone().published()
    assert story.now.prepared is None


def test_a_warning_that_is_not_certain_is_journalled_only() -> None:
    """Anybody can print the words; neither the terminal nor `status` repeats them."""
    story = warn(Story().start().says("busy"), decides=False)
    assert (story.effects, story.now.near, story.now.warned) == ([], None, ())
    assert story.names(last=1) == ["signal.seen"]


def test_a_warning_of_an_agent_that_is_being_replaced_disturbs_nobody() -> None:
    """It is on its way out: what it says last is history."""
    story = warn(Story().start().says("busy").limit())
    assert (story.now.state, story.effects) == (State.HANDING_OFF, [])


def test_another_leg_in_the_same_window_is_not_told_again() -> None:
    """Back from the other agent, the user knows; what named no reset may be of another window by then."""
    story = warn(warned(), resets_at=RESET + timedelta(days=5))
    story.happens(HandoffAsked("bob")).succeeded()
    assert story.now.near is None
    assert warn(story, resets_at=RESET).effects == [ShowMessage(story.leg)]
    story.happens(HandoffAsked("ann")).succeeded()
    assert warn(story).effects == []
    assert story.now.near.agent == "ann"
    nameless = warn(Story().start().says("busy"), resets_at=None)
    nameless.happens(HandoffAsked("bob")).gone().published()
    assert nameless.now.warned == ()


def test_a_new_daemon_says_nothing_twice() -> None:
    """It reads the agent's records anew, and the journal says what was told."""
    story = warned()
    story.refold(story.events).happens(Restarted(leg_lives=True))
    assert story.effects == []
    assert warn(story).effects == []


@pytest.mark.parametrize("until", ["tomorrow", "2026-11-21T21:20:00"])
def test_a_damaged_moment_in_a_journal_is_no_moment(until: str) -> None:
    """A session must be readable whatever a torn or edited line holds."""
    story = Story().start().says("busy")
    signal = SignalSeen("L1", "ann", "near-limit", "warning", "hook", "92%", decides=True, until=until)
    found = fold_event(story.now, Event(99, NOW, 1, signal))
    assert found.near.until == until
    assert fold_event(found, Event(100, NOW, 1, signal)).warned == (found.near,)


def test_without_a_screen_a_packet_is_drafted_for_an_agent_that_can_work_so() -> None:
    """The limit of a headless turn finds the same packet; in a chat no other seat is asked."""
    story = TurnStory()
    story.availability["bob"] = HERE
    story.take().at_work()
    assert warn(story).effects == [ShowMessage(story.leg), DraftPacket(story.leg, "cas")]
    chat = TurnStory().take_seat("ann", "bob").at_work()
    assert warn(chat).effects[-1] == DraftPacket(chat.leg, "cas")
