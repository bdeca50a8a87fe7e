"""Follow sessions: journals from files, and what only the daemon knows from the daemon."""

import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo

from agent_relay.client.connection import Connection
from agent_relay.domain.errors import DaemonUnreachableError, RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.names import get_journal_path, get_sessions_folder
from agent_relay.domain.protocol.timeline import UsageDay
from agent_relay.domain.protocol.watch_output import LiveSession, RestingAgent, parse_live
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values import has_passed
from agent_relay.faces.watch.view import (
    NO_FIGURES,
    NO_STORY,
    Figures,
    SessionView,
    Story,
    View,
    build_session_view,
    fold_story,
)
from agent_relay.session.fold import ImpossibleEventError
from agent_relay.session.views.timeline import TimelineBounds, TimelineFold
from agent_relay.store.journal import JournalTail
from agent_relay.store.session_index import find_ledger_trouble, list_index, list_own_at, read_resting
from agent_relay.system.disk.folders import Folders

_ANSWER_LIMIT_S = 40.0
"""Longest wait for an answer, in seconds: longer than the daemon delays one."""
_HELLO_LIMIT_S = 5.0
_AGAIN_S = 1.0
"""Seconds between looks for a missing daemon, and between checks of files meanwhile."""
_TOO_OLD = "the daemon that runs is of another version: agent-relay daemon restart"
_COARSE_NS = 2_000_000_000
_TIMELINE = TimelineBounds(legs=100, turns=300, handoffs=50)
"""A session may have thousands of legs and turns; a page redraws them at every change."""
_REMEMBERED = timedelta(minutes=1)
"""Time a session that ended stays in view."""


@dataclass(frozen=True, slots=True)
class WatchedSessions:
    """The sessions to watch: one, all of a working tree, or with neither all of this user."""

    root: str = ""
    session: str = ""


Mark = tuple[int, int, int]
Parts = tuple[Story, LiveSession | None, Figures]


@dataclass(slots=True)
class _Seen:
    """One session as far as it was read; `mark` is its file's then, and `view` was last built of `parts`."""

    tail: JournalTail
    mark: Mark = (0, 0, 0)
    story: Story = NO_STORY
    timeline: TimelineFold = field(default_factory=TimelineFold)
    problem: str = ""
    parts: Parts = (NO_STORY, None, NO_FIGURES)
    view: SessionView | None = None


class Watcher:
    """Reads everything `watched` with `read`; `wait` returns when that may bring something new.

    `read` and `give` may be called by several threads, `wait` by one.
    """

    def __init__(self, folders: Folders, watched: WatchedSessions, *, zone: tzinfo) -> None:
        self._folders = folders
        self._watched = watched
        self._zone = zone
        self._turn = threading.Lock()
        self._seen: dict[str, _Seen] = {}
        self._gone: dict[str, Mark] = {}
        self._marks: tuple[Mark, ...] = ()
        self._places: list[tuple[str, str]] = []
        self._refusal = ""
        self._lives: dict[str, LiveSession] = {}
        self._figures: dict[str, Figures] = {}
        self._days: tuple[UsageDay, ...] = ()
        self._connection: Connection | None = None
        self._beat = 0

    def connect(self) -> bool:
        """Connect to a daemon and return whether there is one; start none: watching changes nothing."""
        if self._connection is None:
            try:
                self._connection = Connection.open(self._folders, limit_s=_HELLO_LIMIT_S)
            except RelayError:
                return False
            self._beat = 0
            with self._turn:
                self._lives = {}
        return True

    def ask(self, *, is_patient: bool) -> bool:
        """Ask the daemon for news and return whether there are any.

        If `is_patient`, they are waited for, up to half a minute. False also if the daemon went away, which
        the next `read` says.
        """
        connection = self._connection
        if connection is None:
            return False
        wish = {"root": self._watched.root, "session": self._watched.session, "seen": self._beat}
        try:
            answer = connection.request("watch.follow", limit_s=_ANSWER_LIMIT_S, wait=is_patient, **wish)
            self._refusal = ""
            return self._take(answer)
        except (DaemonUnreachableError, UntrustedDataError):
            self._lose()
        except WrongUseError:
            self._lose()
            self._refusal = _TOO_OLD
        return False

    def wait(self, pause: Callable[[float], object] = time.sleep) -> bool:
        """Wait for a change and return whether the daemon reported one.

        Returns at a change, when the daemon went away, or after half a minute; without a daemon, after a
        second, so that viewers see that it was away.
        """
        if self._connection is None:
            pause(_AGAIN_S)
            if not self.connect():
                return False
        return self.ask(is_patient=True)

    def give(self, figures: dict[str, Figures], days: tuple[UsageDay, ...] = ()) -> None:
        """Show these figures from agents' own records from now on, and the usage by day."""
        with self._turn:
            self._figures, self._days = figures, days

    def sessions(self) -> list[Session]:
        """Return the sessions in view."""
        with self._turn:
            return [seen.story.session for seen in self._seen.values() if seen.story.session is not None]

    def read(self) -> View:
        """Return everything as it is now. Raise nothing: what cannot be read is a problem in the view."""
        with self._turn:
            now = datetime.now(UTC)
            for session, root in self._list_places():
                self._read_on(session, root, now)
            views = [view for seen in self._seen.values() if (view := self._build(seen)) is not None]
            self._lives = {name: live for name, live in self._lives.items() if name in self._seen}
            views.sort(key=lambda view: (view.now.state == State.ENDED, view.now.session))
            return View(
                tuple(views),
                tuple(_build_rest(rest) for rest in read_resting(self._folders.ledger)),
                self._connection is not None,
                tuple(one for one in (self._refusal, *(seen.problem for seen in self._seen.values())) if one),
                find_ledger_trouble(self._folders.ledger),
                self._days,
            )

    def close(self) -> None:
        """Close the connection to the daemon."""
        self._lose()

    def _take(self, answer: dict[str, object]) -> bool:
        told, beat = answer.get("sessions"), answer.get("seen")
        if not isinstance(told, list) or not isinstance(beat, int):
            raise UntrustedDataError("the daemon's answer is not what its format says")
        lives = [parse_live(one) for one in told]
        with self._turn:
            self._lives |= {live.session: live for live in lives}
        self._beat = beat
        return bool(lives)

    def _lose(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        with self._turn:
            self._lives = {}

    def _list_places(self) -> list[tuple[str, str]]:
        """Return (session, root) of all that may be in view, wherever their folders are by now.

        Entries come and go by renaming, which changes a folder's own time: they are read when that changed.
        """
        root = self._watched.root
        folders = (self._folders.sessions, get_sessions_folder(root))
        marks = tuple(_look_at(folder) for folder in folders)
        # A file system's clock is coarse: what changed just now may have changed again since.
        is_new = any(mark[2] > time.time_ns() - _COARSE_NS for mark in marks)
        if is_new or marks != self._marks:
            self._marks, self._places = marks, self._read_places()
        return self._places

    def _read_places(self) -> list[tuple[str, str]]:
        root, session = self._watched.root, self._watched.session
        index = list_index(self._folders.sessions)
        if session:
            return [(name, place) for name, place in index if name == session] or [(session, root)]
        here = [(name, root) for name in list_own_at(root, self._folders.sessions)] if root else []
        return [*here, *(one for one in index if one not in set(here) and root in {"", one[1]})]

    def _read_on(self, session: str, root: str, now: datetime) -> None:
        path = get_journal_path(root, session)
        mark = _look_at(path)
        if self._gone.get(session) == mark:
            return
        self._gone.pop(session, None)
        seen = self._seen.get(session)
        if seen is None or seen.tail.path != path:
            seen = self._seen[session] = _Seen(JournalTail(path))
        if seen.mark != mark or not seen.mark[0]:
            self._read_tail(seen)
            seen.mark = mark
        if self._is_over(seen, now) and not self._watched.session:
            del self._seen[session]
            self._gone[session] = mark

    def _read_tail(self, seen: _Seen) -> None:
        path = seen.tail.path
        try:
            goes_on, events = seen.tail.read_on()
            if not goes_on:
                seen.timeline = TimelineFold()
            seen.story = fold_story(seen.story if goes_on else NO_STORY, events, self._zone)
            for event in events:
                seen.timeline.hear(event)
            seen.problem = ""
        except FileNotFoundError:
            seen.story, seen.problem = NO_STORY, f"{path} is gone" if self._watched.session else ""
        except RelayError as error:
            seen.problem = error.sentence
        except ImpossibleEventError:
            seen.tail = JournalTail(path)
            seen.problem = f"{path} contradicts itself"

    def _is_over(self, seen: _Seen, now: datetime) -> bool:
        session = seen.story.session
        if session is None:
            return not seen.problem
        return session.state is State.ENDED and has_passed(_REMEMBERED, session.updated_at, now)

    def _build(self, seen: _Seen) -> SessionView | None:
        """Build the session's view, or return the last one if nothing changed.

        Looking for secrets on a screen costs more than all else.
        """
        session = seen.story.session
        if session is None:
            return None
        parts = seen.story, self._lives.get(session.id), self._figures.get(session.id, NO_FIGURES)
        if any(one is not other for one, other in zip(parts, seen.parts, strict=True)):
            view = build_session_view(*parts, self._zone)
            figures = parts[2]
            timeline = seen.timeline.build(figures.legs, figures.windows, _TIMELINE)
            seen.parts, seen.view = parts, replace(view, timeline=timeline) if view is not None else None
        return seen.view


def _look_at(path: str) -> Mark:
    """Return what changes when the file or folder does; zeros if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0, 0
    return found.st_ino, found.st_size, found.st_mtime_ns


def _build_rest(rest: Mapping[str, object]) -> RestingAgent:
    return RestingAgent(
        agent=str(rest["agent"]),
        model=str(rest["model"]),
        scope=str(rest["scope"]),
        until=str(rest["until"]),
        assumed=rest["assumed"] is True,
    )
