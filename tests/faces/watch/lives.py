"""A session that works, hits a limit and goes on, line by line, for the tests of watching."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from agent_relay.domain.events import session as words
from agent_relay.domain.events.session import Body, Event
from agent_relay.domain.protocol.watch_output import LiveSession
from agent_relay.faces.watch.view import (
    NO_FIGURES,
    NO_STORY,
    Figures,
    SessionView,
    Story,
    build_session_view,
    fold_story,
)

START = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
BEGINNING: tuple[Body, ...] = (
    words.SessionCreated("S", "/r", "/r/c", ("ada", "bob"), "fix  the\nparser"),
    words.LegStarting("L1", "ada", 1, native_id="n1"),
    words.LegStarted("L1", 10, 11, 12),
    words.LegReady("L1"),
    words.LegBusy("L1"),
)


def lay(bodies: Sequence[Body], *, known: int = 0) -> list[Event]:
    """The lines, ten seconds apart."""
    return [
        Event(known + index, START + timedelta(seconds=10 * (known + index - 1)), 1, body)
        for index, body in enumerate(bodies, 1)
    ]


def follow(*bodies: Body) -> Story:
    """The story of these lines."""
    return fold_story(NO_STORY, lay(bodies), UTC)


def look_at(
    *bodies: Body, live: LiveSession | None = None, figures: Figures = NO_FIGURES, **changes: object
) -> SessionView:
    """What a watcher sees of a session of these lines, some of whose fields are changed."""
    view = build_session_view(follow(*bodies), live, figures, UTC)
    assert view is not None
    return SessionView(view.now.model_copy(update=changes), view.screen, view.told)
