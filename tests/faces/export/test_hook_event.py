"""What a webhook is told of which events: each once, and none that happened before anybody listened."""

from datetime import UTC, timedelta

from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.faces.export._figures import NewEvents, build_hook_event
from agent_relay.faces.watch.view import NO_FIGURES, NO_STORY, View, build_session_view, fold_story
from tests.faces.watch.lives import BEGINNING, START, follow, lay

SECRET = "the user's own words"
LATER: tuple[words.Body, ...] = (words.LegReady("L1"), words.LegBusy("L1"))


def build(*bodies: words.Body) -> list[dict[str, object]]:
    """What is sent of these lines."""
    told = follow(*BEGINNING, *bodies).told[4:]
    return [body for event in told if (body := build_hook_event(event)) is not None]


def test_a_limit_and_what_follows_are_told_by_codes_and_names() -> None:
    """Enough to page somebody or to plan by; not a word of anybody."""
    until = "2026-11-20T21:00:00+00:00"
    (seen, begun, failed, rested) = build(
        words.SignalSeen("L1", "ada", "limit", "account", "hook", SECRET, decides=True, until=until),
        work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit", why=SECRET, focus=SECRET),
        work.HandoffFailed("H1", "begun", SECRET),
        words.SessionRested(SECRET, until),
    )
    assert seen == {
        "schema": "agent-relay/webhook",
        "version": 1,
        "id": "S:6",
        "session": "S",
        "event": "signal.seen",
        "at": "2026-11-20T18:00:50+00:00",
        "agent": "ada",
        "kind": "limit",
        "scope": "account",
        "until": until,
    }
    assert (begun["from_agent"], begun["to_agent"], begun["reason"]) == ("ada", "bob", "rate_limit")
    assert (failed["event"], failed["handoff"], failed["step"]) == ("handoff.failed", "H1", "begun")
    assert rested["until"] == until
    assert SECRET not in str((seen, begun, failed, rested))


def test_what_is_no_code_does_not_leave() -> None:
    """A field that should hold a name may hold anything in a journal somebody damaged."""
    (body,) = build(words.SignalSeen("L1", SECRET, "limit", "a\nb", "hook", "", decides=True, until=SECRET))
    assert set(body) == {"schema", "version", "id", "session", "event", "at", "kind"}


def test_what_nobody_needs_to_be_told_is_not_sent() -> None:
    """Not every busy moment, and no warning that was not acted on."""
    seen = words.SignalSeen("L1", "ada", "limit", "account", "screen", "", decides=False)
    assert build(seen, words.LegAsking("L1"), words.LegBusy("L1"))[0]["event"] == "leg.asking"
    assert len(build(seen, words.LegAsking("L1"), words.LegBusy("L1"))) == 1


def look_at(*bodies: words.Body) -> View:
    view = build_session_view(fold_story(NO_STORY, lay(bodies), UTC), None, NO_FIGURES, UTC)
    assert view is not None
    return View((view,))


def take(news: NewEvents, view: View) -> list[int]:
    return [event.number for event in news.take(view)]


def test_what_was_there_at_first_is_not_told_and_what_comes_is_once() -> None:
    """A webhook that is started again must not be told of last week."""
    news = NewEvents(START + timedelta(seconds=45))
    assert take(news, look_at(*BEGINNING)) == []
    assert take(news, look_at(*BEGINNING, *LATER)) == [6, 7]
    assert take(news, look_at(*BEGINNING, *LATER)) == []


def test_a_session_that_left_and_comes_back_brings_only_what_is_new() -> None:
    """It left the view a minute after its end; going on with it told its whole past again."""
    news = NewEvents(START)
    assert take(news, View()) == []
    assert take(news, look_at(*BEGINNING)) == [1, 2, 4, 5]
    assert take(news, View()) == []
    assert take(news, look_at(*BEGINNING, *LATER)) == [6, 7]


def test_a_session_first_seen_late_brings_what_happened_since_the_beginning() -> None:
    """One that had ended before anybody listened is gone on with: its first life is no news."""
    news = NewEvents(START + timedelta(seconds=45))
    assert take(news, View()) == []
    assert take(news, look_at(*BEGINNING, *LATER)) == [6, 7]
