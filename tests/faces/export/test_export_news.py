"""Which events are told to a webhook: each once, and none that happened before anybody listened."""

from datetime import UTC, timedelta

from agent_relay.domain.events import session as words
from agent_relay.faces.export._figures import NewEvents
from agent_relay.faces.watch.view import NO_FIGURES, NO_STORY, View, build_session_view, fold_story
from tests.faces.watch.lives import BEGINNING, START, lay

LATER: tuple[words.Body, ...] = (words.LegReady("L1"), words.LegBusy("L1"))


def build(*bodies: words.Body) -> View:
    view = build_session_view(fold_story(NO_STORY, lay(bodies), UTC), None, NO_FIGURES, UTC)
    assert view is not None
    return View((view,))


def take(news: NewEvents, view: View) -> list[int]:
    return [event.number for event in news.take(view)]


def test_what_was_there_at_first_is_not_told_and_what_comes_is_once() -> None:
    """A webhook that is started again must not be told of last week."""
    news = NewEvents(START + timedelta(seconds=45))
    assert take(news, build(*BEGINNING)) == []
    assert take(news, build(*BEGINNING, *LATER)) == [6, 7]
    assert take(news, build(*BEGINNING, *LATER)) == []


def test_a_session_that_left_and_comes_back_brings_only_what_is_new() -> None:
    """It left the view a minute after its end; going on with it told its whole past again."""
    news = NewEvents(START)
    assert take(news, View()) == []
    assert take(news, build(*BEGINNING)) == [1, 2, 4, 5]
    assert take(news, View()) == []
    assert take(news, build(*BEGINNING, *LATER)) == [6, 7]


def test_a_session_first_seen_late_brings_what_happened_since_the_beginning() -> None:
    """One that had ended before anybody listened is gone on with: its first life is no news."""
    news = NewEvents(START + timedelta(seconds=45))
    assert take(news, View()) == []
    assert take(news, build(*BEGINNING, *LATER)) == [6, 7]
