"""Who has the next turn of a chat, and when it is over."""

import pytest

from agent_relay.domain.events.session import LegEnded, LegStarted, LegStarting, SessionCreated, SessionEnded
from agent_relay.domain.events.work import TurnBegun, TurnEnded
from agent_relay.domain.values import replace
from agent_relay.session.turns.chat import ChatEnd, Seat, fold_chat, is_agreed
from tests.session.chat_story import ABLE, NOW, RESET, ChatStory


def test_everybody_speaks_in_their_order() -> None:
    """Alternating turns, in the order the user named them."""
    story = ChatStory("bob", "ann")
    assert story.next == Seat("bob", "bob", ("ann",))
    story.turn("bob", "one")
    assert story.next == Seat("ann", "ann", ("bob",))
    story.turn("ann", "two")
    assert story.next == Seat("bob", "bob", ("ann",))


def test_a_chat_is_over_when_all_agree_in_a_row() -> None:
    """One that still has something to say keeps it going."""
    story = ChatStory().turn("ann", "fine\nAGREED").turn("bob", "wait")
    assert isinstance(story.next, Seat)
    story.turn("ann", "AGREED")
    assert isinstance(story.next, Seat)
    story.turn("bob", "yes.\n\n**AGREED**\n")
    assert story.next == ChatEnd("agreed")


@pytest.mark.parametrize(
    "text",
    [
        "I have not AGREED",
        "they said:\n> AGREED",
        "AGREED\nbut one thing",
        "agreed",
        "",
        "\n \n",
        "AGREED: no",
    ],
)
def test_only_a_last_line_of_that_word_agrees(text: str) -> None:
    """Who writes about agreeing has not agreed."""
    assert not is_agreed(text)
    assert is_agreed(f"{text}\n\n`AGREED`.\n\n")


def test_turns_are_counted_since_the_chat_was_begun_or_gone_on_with() -> None:
    """`-n 2` is two answers; going on gives two more."""
    story = ChatStory(most=2).turn("ann", "one")
    assert isinstance(story.next, Seat)
    story.turn("bob", "two")
    assert story.next == ChatEnd("turns")
    story.begin("ann", "bob", most=2)
    assert story.next == Seat("ann", "ann", ("bob",))


def test_somebody_else_takes_the_place_of_who_rests() -> None:
    """The next of the order who has no turn of their own; nobody is in two places."""
    story = ChatStory().rests("ann")
    assert story.next == Seat("ann", "cas", ("bob",))
    story.rests("bob")
    assert story.next == Seat("ann", "cas", ("bob", "dan"))
    story.turn("ann", "hello", speaker="cas")
    assert story.next == Seat("bob", "dan", ("ann", "cas"))


def test_without_anybody_else_the_chat_goes_on_without_who_rests() -> None:
    """Two can talk where three began."""
    story = ChatStory("ann", "bob", "cas").rests("bob", "dan").turn("ann", "one")
    assert story.next == Seat("cas", "cas", ("ann", "bob"))


def test_who_is_back_has_its_turn_again() -> None:
    """A reset ends the rest; what was said meanwhile is told then."""
    story = ChatStory().rests("ann").turn("ann", "for ann", speaker="cas").turn("bob", "two")
    story.availability["ann"] = ABLE
    assert story.next == Seat("ann", "ann", ("bob",))


def test_alone_nobody_is_left_to_talk_to() -> None:
    """The earliest reset is what a script sleeps until."""
    story = ChatStory().rests("ann", "cas", "dan")
    found = story.next
    assert isinstance(found, ChatEnd)
    assert (found.outcome, found.until) == ("resting", RESET)
    assert len(found.skipped) == 3
    unknown = ChatStory()
    for name in ("ann", "cas", "dan"):
        unknown.availability[name] = replace(ABLE, resting=True)
    assert unknown.next == ChatEnd(
        "resting",
        "nobody is left to talk to",
        None,
        tuple(f"{name}: rests until you say otherwise (limit)" for name in ("ann", "cas", "dan")),
    )


def test_a_limit_met_in_the_chat_counts_before_the_ledger_knows() -> None:
    """Asking the same agent again and again until a slow disk has written it would cost a turn each time."""
    story = ChatStory().limit("ann", RESET.isoformat()).turn("ann", outcome="resting")
    assert story.next == Seat("bob", "bob", ("ann", "cas"))
    story.turn("bob", "two")
    assert story.next == Seat("ann", "cas", ("bob",))
    past = ChatStory().limit("ann", NOW.isoformat())
    assert past.next == Seat("ann", "ann", ("bob",))
    unknown = ChatStory().limit("ann")
    assert unknown.next == Seat("ann", "cas", ("bob",))


def test_an_agent_that_answers_after_its_limit_is_not_limited() -> None:
    """Only its model was, and it went on with another one."""
    story = ChatStory().limit("ann", RESET.isoformat()).turn("ann", "with another model").turn("bob", "two")
    assert story.next == Seat("ann", "ann", ("bob",))


def test_who_takes_part_is_believed_to_be_signed_in() -> None:
    """A key may stand where no adapter looks; who only steps in has to be known to be."""
    story = ChatStory()
    story.availability |= dict.fromkeys(("ann", "cas"), replace(ABLE, signed_in=False))
    assert story.next == Seat("ann", "ann", ("bob",))
    story.rests("bob").turn("ann", "one")
    assert story.next == Seat("bob", "dan", ("ann",))


@pytest.mark.parametrize(("outcome", "told"), [("failed", "failed"), ("stopped", "stopped")])
def test_a_turn_without_a_good_end_ends_the_chat_and_is_taken_again(outcome: str, told: str) -> None:
    """Going on is up to the user, and begins with who did not come to an end."""
    story = ChatStory().turn("ann", "one").turn("bob", "half", outcome=outcome)
    found = story.next
    assert isinstance(found, ChatEnd)
    assert (found.outcome, found.why) == (told, "why")
    assert [one.text for one in story.chat.messages] == ["one"]
    story.begin("ann", "bob")
    assert story.next == Seat("bob", "bob", ("ann",))


def test_other_agents_may_go_on() -> None:
    """Who spoke last need not take part any more."""
    story = ChatStory().turn("ann", "one").begin("cas", "bob", task="and now?")
    assert story.next == Seat("cas", "cas", ("bob",))


def test_turns_that_are_of_no_chat_are_passed_over() -> None:
    """`run --continue` in a chat's session is nobody's turn in it."""
    assert fold_chat([]) is None
    story = ChatStory()
    only_session = [event for event in story.events if isinstance(event.body, SessionCreated)]
    assert fold_chat(only_session) is None
    story.note(TurnBegun("ann", "paint"), TurnEnded("L", "failed", "why"))
    assert (story.chat.begun, story.next) == ((), Seat("ann", "ann", ("bob",)))
    plain = ChatStory()
    plain.events = plain.note(TurnBegun("ann", "paint", seat="ann"), TurnEnded("L", "done")).events[2:]
    assert fold_chat(plain.events) is None


def test_a_turn_nobody_was_asked_for_did_not_happen() -> None:
    """A daemon that is killed before it started an agent costs the chat nothing: the turn is begun again."""
    story = ChatStory().turn("ann", "one")
    begun = story.chat.begun
    story.note(TurnBegun("bob", "…", seat="bob"), TurnEnded("", "stopped", "killed"), SessionEnded("killed"))
    assert (story.chat.begun, story.next) == (begun, Seat("bob", "bob", ("ann",)))
    lost = (TurnBegun("bob", "…", seat="bob"), LegStarting("L", "bob", 2, headless=True))
    story.note(*lost, TurnEnded("L", "failed", "lost"), LegEnded("L", "lost"), SessionEnded("lost"))
    assert (story.chat.begun, story.next) == (begun, Seat("bob", "bob", ("ann",)))


@pytest.mark.parametrize("how", ["unstarted", "lost"])
def test_an_agent_that_cannot_be_started_or_was_lost_at_work_ends_the_chat(how: str) -> None:
    """Asking it again and again would go on for ever."""
    story = ChatStory()
    lived = (LegStarted("L", 10, 11, 12),) if how == "lost" else ()
    story.note(TurnBegun("ann", "…", seat="ann"), LegStarting("L", "ann", 1, headless=True), *lived)
    story.note(TurnEnded("L", "failed", "broken"), LegEnded("L", how))
    assert story.next == ChatEnd("failed", "broken")


def test_a_session_that_is_stopped_before_anybody_is_asked_stops_the_chat() -> None:
    """Whoever did that wants nobody to go on."""
    story = ChatStory().note(TurnBegun("ann", "…", seat="ann"), SessionEnded("by hand"))
    assert story.next == ChatEnd("stopped", "by hand")


def test_a_limit_that_is_met_again_after_its_reset_does_not_go_on_for_ever() -> None:
    """A clock that is wrong by a minute must not ask an agent a thousand times in that minute."""
    story = ChatStory()
    for _ in range(6):
        story.limit("ann", "2026-11-21T18:19:00+00:00").turn("ann", outcome="resting")
    assert isinstance(story.next, Seat)
    story.turn("bob", outcome="resting")
    again = "limits are met again and again"
    assert story.next == ChatEnd("resting", again, None, (again,))
