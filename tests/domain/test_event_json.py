"""Events as journal lines: what is written is read again, what is no event is told."""

import json
from datetime import UTC, datetime

import pytest

from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events import session as words
from agent_relay.domain.events import work
from agent_relay.domain.events.codec import parse_event, render_event
from agent_relay.domain.events.session import KNOWN, Body, Event
from agent_relay.domain.session import Asker, Terms

AT = datetime(2026, 11, 20, 18, 0, tzinfo=UTC)
SEEN = words.SignalSeen("L1", "ada", "limit", "account", "hook", "session limit", decides=True, until="")
LINE = {"v": 1, "n": 3, "at": AT.isoformat(), "g": 1, "event": "leg.ready", "data": {"leg": "L1"}}


@pytest.mark.parametrize(
    "body",
    [
        words.SessionCreated("S", "/r", "/r/c", ("ada", "bob"), "fix it"),
        words.LegStarting("L1", "ada", 1, resumes=True),
        SEEN,
        work.HandoffBegun("H1", "L1", "ada", "bob", "rate_limit", skipped=("cas: not installed",)),
        words.LegEnded("L1", "exited", 3),
        work.TurnBegun("ada", "fix it", most=3, ends=True),
        words.Unknown("later.event", {"x": [1, {"y": None}]}),
    ],
)
def test_an_event_is_read_as_it_was_written(body: Body) -> None:
    """The journal is the truth: nothing of it may change on the way."""
    event = Event(7, AT, 2, body)
    assert parse_event(json.loads(json.dumps(render_event(event)))) == event


def test_all_that_was_asked_of_a_handoff_is_journalled() -> None:
    """A term that the event lacks would be forgotten at the next start of the daemon."""
    asked = {*Terms.__struct_fields__, *Asker.__struct_fields__}
    assert asked <= set(work.HandoffBegun.__struct_fields__)


def test_every_event_has_its_own_name() -> None:
    """Two events of one name could not be told apart on disk."""
    assert len({kind.name for kind in KNOWN}) == len(KNOWN)


def test_a_journal_from_before_models_were_chosen_is_read() -> None:
    """Every journal of an earlier version stays readable."""
    begun = {"handoff": "H1", "from_leg": "L1", "from_agent": "ada", "to_agent": "bob", "reason": "manual"}
    starting = {"leg": "L2", "agent": "bob", "generation": 2}
    bodies = [
        parse_event({**LINE, "event": "handoff.begun", "data": begun}).body,
        parse_event({**LINE, "event": "leg.starting", "data": starting}).body,
    ]
    assert bodies == [
        work.HandoffBegun("H1", "L1", "ada", "bob", "manual", model=""),
        words.LegStarting("L2", "bob", 2, model=""),
    ]


def test_fields_of_a_newer_version_are_passed_over() -> None:
    """A downgrade must still read what it understands."""
    event = parse_event({**LINE, "data": {"leg": "L1", "mood": "fine"}})
    assert event.body == words.LegReady("L1")


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"n": "3"}, "is not an event"),
        ({"at": 5}, "is not an event"),
        ({"g": None}, "is not an event"),
        ({"event": 7}, "is not an event"),
        ({"data": []}, "is not an event"),
        ({"at": "yesterday"}, "carries no valid time"),
        ({"data": {}}, "leg.ready event lacks a field"),
        ({"data": {"leg": 5}}, "has a leg of the wrong type"),
    ],
)
def test_a_line_that_is_no_event_is_told(change: dict[str, object], complaint: str) -> None:
    """A damaged journal must stop the session with a sentence, not go on with half of the truth."""
    with pytest.raises(UntrustedDataError, match=complaint):
        parse_event({**LINE, **change})


def test_a_list_holds_nothing_but_texts() -> None:
    """What is shown to people and given to agents must be words."""
    data = {"why": "all rest", "skipped": ["bob: rests", 7]}
    line = {"n": 1, "at": "2026-11-20T18:00:00+00:00", "g": 0, "event": "session.rested", "data": data}
    with pytest.raises(UntrustedDataError, match=r"session\.rested event has a skipped of the wrong type"):
        parse_event(line)


def test_a_handoff_of_an_older_version_expects_nothing() -> None:
    """Journals from before handoffs carried expectations stay readable as they are."""
    data = {"handoff": "H", "from_leg": "L", "from_agent": "ada", "to_agent": "bob", "reason": "manual"}
    line = {"n": 2, "at": "2026-11-20T18:00:00+00:00", "g": 1, "event": "handoff.begun", "data": data}
    body = parse_event(line).body
    assert isinstance(body, work.HandoffBegun)
    assert body == work.HandoffBegun("H", "L", "ada", "bob", "manual")
    assert (body.parent, body.depth, body.deliverables, body.rollback) == ("", 0, (), "")
