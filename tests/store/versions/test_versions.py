"""Packets and journals of other versions: old ones are read, new fields survive, new majors are refused.

The files beside this one are never written again; a new version adds its own.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

from agent_relay.domain.documents.packet_json import parse_packet, render_document
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.domain.events.codec import parse_event, render_event
from agent_relay.domain.events.session import Unknown
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.redact.packet import redact_packet
from agent_relay.session.fold import fold_events
from agent_relay.session.views.summary import summarize
from agent_relay.store.journal import read_events
from agent_relay.store.packet_publication import publish_packet
from agent_relay.store.packets import find_edited, read_body, read_packet

HERE = os.path.dirname(os.path.abspath(__file__))


def load(name: str) -> dict[str, object]:
    """The document kept under this name."""
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        found = json.load(file)
    assert isinstance(found, dict)
    return found


def fold(name: str) -> Session:
    """The session the journal kept under this name describes."""
    session = fold_events(read_events(os.path.join(HERE, name)))
    assert session is not None
    return session


@pytest.mark.parametrize("name", ["packet-1-least.json", "packet-1.json", "packet-1-newer.json"])
def test_a_packet_of_version_1_goes_through_us_unchanged(name: str) -> None:
    """Every field, those of later programs at every depth included."""
    document = load(name)
    assert render_document(parse_packet(document)) == document
    redacted = render_document(redact_packet(parse_packet(document)))
    assert {**redacted, "spared": ""} == {**document, "spared": ""}


def test_a_packet_of_version_1_is_published_again_with_what_we_do_not_know(tmp_path: Path) -> None:
    """The store writes it as it was, but for its own fingerprints."""
    document = load("packet-1-newer.json")
    publish_packet(str(tmp_path), parse_packet(document), "text")
    with open(tmp_path / "resume" / "0002-understudy.json", encoding="utf-8") as file:
        again = json.load(file)
    del document["published"], again["published"]
    assert again == document


def test_what_was_published_by_an_older_program_counts_as_unedited(tmp_path: Path) -> None:
    """Its fingerprints must not depend on who computes them; no original was kept then."""
    resume = tmp_path / "resume"
    resume.mkdir()
    for ending in ("json", "md"):
        shutil.copy(os.path.join(HERE, f"packet-1.{ending}"), resume / f"0002-understudy.{ending}")
    assert find_edited(str(tmp_path), 2, "understudy") == "nothing"
    assert "Never touch the blue door." in read_body(str(tmp_path), 2, "understudy")
    assert (
        read_packet(str(resume / "0002-understudy.json")).task == "Paint the shed. Never touch the blue door."
    )


def test_a_packet_of_a_newer_major_version_is_refused_in_a_sentence() -> None:
    """Half understood would be worse than not read."""
    with pytest.raises(UntrustedDataError) as caught:
        parse_packet(load("packet-2.json"), name="p.json")
    assert caught.value.sentence == "p.json has version 2, this agent-relay reads up to 1"
    assert caught.value.hint == "Upgrade agent-relay."


@pytest.mark.parametrize("name", ["journal-0.jsonl", "journal-1.jsonl", "journal-1-newer.jsonl"])
def test_a_journal_of_another_version_tells_the_same_story(name: str) -> None:
    """Written before fields and events were added, as today, and with ones still to come."""
    session = fold(name)
    assert (session.state, session.agent, session.why) == (State.ENDED, "understudy", "understudy exited")
    assert [(leg.agent, leg.how) for leg in session.legs] == [("demo", "stopped"), ("understudy", "exited")]
    assert [(one.to_agent, one.reason, one.sequence) for one in session.done] == [
        ("understudy", "rate_limit", 2)
    ]
    assert session.limit is not None
    assert session.limit.scope == "account"
    with open(os.path.join(HERE, name), encoding="utf-8") as file:
        view = summarize(json.loads(line) for line in file)
    assert view is not None
    assert (view["state"], view["agent"], view["handoffs"]) == ("ended", "understudy", 1)


def test_events_nobody_knows_yet_survive_a_round_trip() -> None:
    """What an older program carries along is still there when the newer one comes back."""
    with open(os.path.join(HERE, "journal-1-newer.jsonl"), encoding="utf-8") as file:
        events = [parse_event(json.loads(line)) for line in file]
    unknown = [event for event in events if isinstance(event.body, Unknown)]
    assert len(unknown) == 3
    assert all(parse_event(render_event(event)) == event for event in events)


def test_a_journal_of_a_newer_major_version_is_refused_in_a_sentence() -> None:
    """Its first line says so; nothing is appended to it and nothing guessed."""
    with pytest.raises(UntrustedDataError, match="it has version 2, this agent-relay reads up to 1"):
        fold("journal-2.jsonl")
