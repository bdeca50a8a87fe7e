"""A journal as a watcher follows it, one view of all under watch, and what leads to the next moment."""

from datetime import UTC, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.protocol.watch_output import (
    LiveSession,
    RestingAgent,
    TokensUsed,
    WatchPlanStep,
    build_context,
)
from agent_relay.domain.values import replace
from agent_relay.faces.watch.view import (
    NO_FIGURES,
    NO_STORY,
    Figures,
    View,
    build_session_view,
    fold_story,
    list_changes,
)
from agent_relay.session.fold import ImpossibleEventError
from tests.faces.watch.lives import BEGINNING, START, follow, lay, look_at

LIVE = LiveSession(
    "S", 5, "L1", title="ada", rows=("hello", "key AKIAIOSFODNN7EXAMPLE"), context=build_context(61, 100)
)
TOKENS = TokensUsed(
    input=1, cached=2, cache_write=3, output=4, reasoning=0, total=10, cost_usd="0.5", cost_is_whole=True
)


def test_a_session_at_work_is_shown_with_all_that_is_known() -> None:
    """State from the journal, screen from the daemon, figures from the agents' records: one view."""
    figures = Figures(TOKENS, (WatchPlanStep(text="write it", status="pending"),), "m2")
    view = look_at(*BEGINNING, live=replace(LIVE, trouble="no disk"), figures=figures)
    now = view.now
    assert (now.session, now.state, now.agent, now.task) == ("S", "busy", "ada", "fix the parser")
    assert now.title == "fix the parser"
    assert (now.turn_since, now.turns) == ("2026-11-20T18:00:40+00:00", 1)
    assert (now.trouble, now.model, now.tokens) == ("no disk", "m2", TOKENS)
    assert now.context == build_context(61, 100)
    assert [step.text for step in now.plan] == ["write it"]
    assert [event.text for event in view.told][-1] == "ada works"


def test_a_screen_is_shown_without_the_secrets_on_it() -> None:
    """An agent prints `.env` files; a browser and a log are no places for them."""
    screen = look_at(*BEGINNING, live=LIVE).screen
    assert screen is not None
    assert screen.rows[0] == "hello"
    assert "AKIAIOSFODNN7EXAMPLE" not in screen.rows[1]


def test_a_screen_of_an_earlier_leg_or_a_dead_one_is_not_shown() -> None:
    """The successor's name over the predecessor's screen would be a lie."""
    assert look_at(*BEGINNING, live=replace(LIVE, leg="L0")).screen is None
    ended = (words.LegEnded("L1", "exited", 0), words.SessionEnded("over"))
    view = look_at(*BEGINNING, *ended, live=LIVE)
    assert view.screen is None
    assert (view.now.state, view.now.about) == ("ended", "over")


def test_without_a_daemon_the_journal_says_how_full_a_context_was() -> None:
    """A watcher is not blind while there is no daemon."""
    noted = work.ContextNoted("L1", 800, 1000, "draft", "2026-11-20T18:00:40+00:00")
    assert look_at(*BEGINNING, noted).now.context == build_context(800, 1000)
    assert look_at(*BEGINNING).now.context is None


def test_a_session_without_a_leg_or_a_journal_without_a_session_harms_nothing() -> None:
    """Journals are looked at from their first line on."""
    assert look_at(BEGINNING[0]).now.agent == ""
    assert build_session_view(NO_STORY, None, NO_FIGURES, UTC) is None


def test_only_what_changed_is_told_again() -> None:
    """A stream that repeats itself cannot be read by people, and fills disks."""
    before = View((look_at(*BEGINNING, live=LIVE),), (), is_daemon_here=True)
    types = ["daemon", "resting", *["event"] * 4, "session", "screen"]
    assert [event.type for event in list_changes(None, before)] == types
    assert list(list_changes(before, before)) == []
    moved = View((look_at(*BEGINNING, live=replace(LIVE, rows=("bye",))),), (), is_daemon_here=True)
    assert [event.type for event in list_changes(before, moved)] == ["screen"]
    later = look_at(*BEGINNING, words.LegReady("L1"))
    rest = (RestingAgent(agent="ada", model="", scope="account", until=""),)
    after = View((later,), rest, is_daemon_here=False)
    assert [event.type for event in list_changes(before, after)] == ["daemon", "resting", "event", "session"]
    assert [event.model_dump() for event in list_changes(after, View((), rest))] == [
        {"type": "left", "session": "S"}
    ]


def test_that_nobody_can_tell_who_rests_is_told_and_so_is_that_it_is_known_again() -> None:
    """An empty list alone would say that nobody does."""
    known, unknown = View(), View(rests_unknown="cannot read it")
    assert [event.model_dump() for event in list_changes(known, unknown)] == [
        {"type": "resting", "agents": (), "unknown": "cannot read it"}
    ]
    assert list(list_changes(unknown, unknown)) == []
    assert [event.model_dump() for event in list_changes(unknown, known)] == [
        {"type": "resting", "agents": (), "unknown": ""}
    ]


def test_the_turn_clock_runs_from_the_first_work_to_the_next_rest() -> None:
    """Who waits for an answer wants to know since when; an approval in between is part of it."""
    story = follow(*BEGINNING, words.LegAsking("L1"), words.LegBusy("L1"))
    assert story.turn_since == START + timedelta(seconds=40)
    assert (story.turns, story.turn_s) == (1, None)
    over = fold_story(story, lay([words.LegReady("L1")], known=7), UTC)
    assert (over.turn_since, over.turn_s, over.turns) == (None, 30.0, 1)
    assert over.since == START + timedelta(seconds=70)


def test_a_limit_ends_the_turn_and_is_counted() -> None:
    """How often one was hit is what a day's plan is made of."""
    seen = words.SignalSeen("L1", "ada", "limit", "account", "hook", "session limit", decides=True)
    story = follow(*BEGINNING, seen)
    assert (story.limits, story.turn_since, story.turn_s) == (1, None, 10.0)


def test_reading_on_is_reading_all_at_once() -> None:
    """A watcher reads what was written since; it must not see another session for that."""
    lines = lay([*BEGINNING, words.LegReady("L1"), words.LegBusy("L1")])
    pieces = NO_STORY
    for line in lines:
        pieces = fold_story(pieces, [line], UTC)
    assert pieces == fold_story(NO_STORY, lines, UTC)
    assert fold_story(pieces, [], UTC) is pieces


def test_what_comes_before_the_session_is_passed_over() -> None:
    """A later version may begin its journals otherwise."""
    assert fold_story(NO_STORY, lay([words.Unknown("later.event", {})]), UTC) == NO_STORY


def test_the_newest_two_hundred_events_are_kept() -> None:
    """A session of weeks must not grow a watcher's memory."""
    turns = [words.LegReady("L1"), words.LegBusy("L1")] * 150
    story = follow(*BEGINNING, *turns)
    assert len(story.told) == 200
    assert story.told[-1].number == 305
    assert story.told[-1].text == "ada works"


def test_a_journal_that_contradicts_itself_is_told() -> None:
    """Showing a guess would be worse than showing nothing."""
    with pytest.raises(ImpossibleEventError):
        follow(words.LegReady("L1"))
