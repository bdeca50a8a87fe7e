"""What a webhook is told of which events, each once, and what is said where readings do not succeed."""

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.protocol.watch_output import Figure
from agent_relay.faces.export._figures import ExportLoop, ExportReader, NewEvents, build_hook_event
from agent_relay.faces.watch.view import View
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.system.disk.folders import Folders
from tests.faces.watch.lives import BEGINNING, START, follow, look_at

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


def take(news: NewEvents, *views: View) -> list[list[int]]:
    """What is new in each of these views, one after another."""
    return [[event.number for event in news.take(view)] for view in views]


def test_each_event_is_told_once_and_none_that_happened_before_anybody_listened() -> None:
    """A webhook that is started again must not be told of last week, nor who comes back of its whole past.

    A session leaves the view a minute after its end. One that had ended before anybody listened is gone on
    with: its first life is no news.
    """
    begun, later = View((look_at(*BEGINNING),)), View((look_at(*BEGINNING, *LATER),))
    late = START + timedelta(seconds=45)
    assert take(NewEvents(late), begun, later, later) == [[], [6, 7], []]
    assert take(NewEvents(START), View(), begun, View(), later) == [[], [1, 2, 4, 5], [], [6, 7]]
    assert take(NewEvents(late), View(), later) == [[], [6, 7]]


class FailingReader(ExportReader):
    """A reader whose readings end one after another as they were told to."""

    def __init__(self, folders: Folders, errors: Iterator[Exception]) -> None:
        super().__init__(folders, {})
        self._errors = errors

    def read(self, _view: View, _now: datetime) -> list[Figure]:
        """Raise the next one."""
        raise next(self._errors)


@pytest.mark.size("test")
def test_figures_that_stand_still_are_said_to(tmp_path: os.PathLike[str]) -> None:
    """A dashboard showed what was true an hour ago, and nobody was told."""
    folders = Folders(f"{tmp_path}/config", f"{tmp_path}/state", f"{tmp_path}/run")
    over = OSError("over")
    errors = iter(
        [RelayError("the disk is gone"), RelayError("the disk is gone"), RelayError("it burns"), over]
    )
    warned: list[str] = []
    watcher = Watcher(folders, WatchedSessions(), zone=UTC)
    loop = ExportLoop(watcher, FailingReader(folders, errors), interval_s=0.001, warn=warned.append)
    with pytest.raises(OSError, match="over"):
        loop.run(lambda _event: None)
    assert warned == [
        "the figures are not being updated: the disk is gone",
        "the figures are not being updated: it burns",
    ]
