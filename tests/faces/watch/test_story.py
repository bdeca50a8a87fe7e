"""A journal as a watcher follows it."""

from datetime import UTC, timedelta

import pytest

from agent_relay.domain.events import session as words
from agent_relay.faces.watch.view import NO_STORY, fold_story
from agent_relay.session.fold import ImpossibleEventError
from tests.faces.watch.lives import BEGINNING, START, follow, lay


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
