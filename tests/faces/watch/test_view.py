"""One view of everything under watch, and what leads from one moment to the next."""

from datetime import UTC

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
    SessionView,
    Story,
    View,
    build_session_view,
    list_changes,
)
from tests.faces.watch.lives import BEGINNING, follow

LIVE = LiveSession(
    "S", 5, "L1", title="ada", rows=("hello", "key AKIAIOSFODNN7EXAMPLE"), context=build_context(61, 100)
)
TOKENS = TokensUsed(
    input=1, cached=2, cache_write=3, output=4, reasoning=0, total=10, cost_usd="0.5", cost_is_whole=True
)


def build(story: Story, live: LiveSession | None = None, figures: Figures = NO_FIGURES) -> SessionView:
    found = build_session_view(story, live, figures, UTC)
    assert found is not None
    return found


def test_a_session_at_work_is_shown_with_all_that_is_known() -> None:
    """State from the journal, screen from the daemon, figures from the agents' records: one view."""
    figures = Figures(TOKENS, (WatchPlanStep(text="write it", status="pending"),), "m2")
    view = build(follow(*BEGINNING), replace(LIVE, trouble="no disk"), figures)
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
    screen = build(follow(*BEGINNING), LIVE).screen
    assert screen is not None
    assert screen.rows[0] == "hello"
    assert "AKIAIOSFODNN7EXAMPLE" not in screen.rows[1]


def test_a_screen_of_an_earlier_leg_or_a_dead_one_is_not_shown() -> None:
    """The successor's name over the predecessor's screen would be a lie."""
    assert build(follow(*BEGINNING), replace(LIVE, leg="L0")).screen is None
    ended = follow(*BEGINNING, words.LegEnded("L1", "exited", 0), words.SessionEnded("over"))
    view = build(ended, LIVE)
    assert view.screen is None
    assert (view.now.state, view.now.about) == ("ended", "over")


def test_without_a_daemon_the_journal_says_how_full_a_context_was() -> None:
    """A watcher is not blind while there is no daemon."""
    noted = work.ContextNoted("L1", 800, 1000, "draft", "2026-11-20T18:00:40+00:00")
    assert build(follow(*BEGINNING, noted)).now.context == build_context(800, 1000)
    assert build(follow(*BEGINNING)).now.context is None


def test_a_session_without_a_leg_or_a_journal_without_a_session_harms_nothing() -> None:
    """Journals are looked at from their first line on."""
    assert build(follow(BEGINNING[0])).now.agent == ""
    assert build_session_view(NO_STORY, None, NO_FIGURES, UTC) is None


def test_only_what_changed_is_told_again() -> None:
    """A stream that repeats itself cannot be read by people, and fills disks."""
    story = follow(*BEGINNING)
    before = View((build(story, LIVE),), (), is_daemon_here=True)
    assert [event.type for event in list_changes(None, before)] == [
        "daemon",
        "resting",
        *["event"] * 4,
        "session",
        "screen",
    ]
    assert list(list_changes(before, before)) == []
    moved = View((build(story, replace(LIVE, rows=("bye",))),), (), is_daemon_here=True)
    assert [event.type for event in list_changes(before, moved)] == ["screen"]
    later = follow(*BEGINNING, words.LegReady("L1"))
    rest = (RestingAgent(agent="ada", model="", scope="account", until=""),)
    after = View((build(later),), rest, is_daemon_here=False)
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
