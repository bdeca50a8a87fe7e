"""Which conversation is a leg's own, by what the journal and the agent's adapter say of it."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import LoadedAdapter, load_adapter
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.values import replace
from agent_relay.engine.publishing.native_records import find_native, gather_facts
from agent_relay.system.processes import born

if TYPE_CHECKING:
    from collections.abc import Mapping


BEGAN = datetime(2026, 11, 20, 10, tzinfo=UTC)
LEG = Leg("L", "own", 1, BEGAN, was_busy=True)


class Place:
    """A home with conversations of an agent that chooses their ids, and a leg of it."""

    def __init__(self, home: Path, loaded: LoadedAdapter) -> None:
        self.home = home
        self.loaded = loaded
        self.session = Session("S", "/p", "/p", BEGAN, BEGAN)

    def write(self, name: str, said: str) -> str:
        """A conversation begun a minute after the leg."""
        folder = self.home / ".codex/sessions/2026/11/20"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"rollout-{name}.jsonl"
        at = (BEGAN + timedelta(minutes=1)).isoformat()
        content = [{"type": "input_text", "text": said}]
        payloads: tuple[tuple[str, Mapping[str, object]], ...] = (
            ("session_meta", {"id": name, "cwd": "/p", "timestamp": at, "source": "cli"}),
            ("response_item", {"type": "message", "role": "user", "content": content}),
        )
        rows = [{"type": kind, "timestamp": at, "payload": payload} for kind, payload in payloads]
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        return str(path)

    def find(self, leg: Leg) -> str:
        """The id of the leg's conversation, empty for none."""
        found = find_native(self.loaded, self.session, leg, {"HOME": str(self.home)})
        return found.native_id if found is not None else ""

    def say(self, leg: Leg) -> tuple[str, list[str]]:
        """Why the leg's record cannot be read, and what it holds."""
        facts = gather_facts(self.loaded, self.session, leg, {"HOME": str(self.home)})
        return facts.unread, [said.text for said in facts.conversation]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """With the adapter of one that keeps its file open."""
    return Place(tmp_path, load_adapter(os.path.join(find_builtin_folder(), "codex"), origin="built-in"))


def test_a_leg_that_was_asked_nothing_has_no_conversation(place: Place) -> None:
    """The newest one of its folder is that of the plain agent beside it."""
    place.write("theirs", "mow the lawn")
    assert place.find(replace(LEG, was_busy=False)) == ""
    assert place.say(replace(LEG, was_busy=False)) == ("", [])


def test_a_leg_that_was_named_keeps_its_name(place: Place) -> None:
    """Whatever is newer in its folder, and whoever has it open."""
    place.write("ours", "paint the shed")
    place.write("theirs", "mow the lawn")
    assert place.find(replace(LEG, native_id="ours")) == "ours"
    assert place.say(replace(LEG, native_id="ours")) == ("", ["paint the shed"])


def test_a_leg_that_resumes_a_conversation_has_it_before_it_has_written_a_word(place: Place) -> None:
    """Stopped within a second it was said to have lost its record, which stood there whole."""
    path = place.write("ours", "paint the shed")
    earlier = (BEGAN - timedelta(hours=1)).timestamp()
    os.utime(path, (earlier, earlier))
    assert place.say(replace(LEG, native_id="ours", resumes=True)) == ("", ["paint the shed"])
    assert place.find(LEG) == ""


def test_a_living_leg_has_the_conversation_it_has_open(place: Place) -> None:
    """And none before it has."""
    leg = replace(LEG, child_pid=os.getpid(), child_born=born(os.getpid()) or 0)
    ours = place.write("ours", "paint the shed")
    place.write("theirs", "mow the lawn")
    assert place.find(leg) == ""
    with open(ours, "ab"):
        assert place.find(leg) == "ours"


def test_of_two_that_nothing_tells_apart_neither_is_handed_over(place: Place) -> None:
    """The packet says why it has nothing."""
    place.write("one", "paint the shed")
    place.write("two", "mow the lawn")
    why = "2 conversations in this folder may be this one's, and nothing tells which"
    assert place.say(LEG) == (why, [])
    assert place.find(LEG) == ""


def test_a_living_leg_whose_agent_names_its_own_is_not_guessed_at(tmp_path: Path) -> None:
    """Its server has not spoken yet: whatever stands there is another one's."""
    loaded = load_adapter(os.path.join(find_builtin_folder(), "codex"), origin="built-in")
    transcript = loaded.adapter.transcript
    assert transcript is not None
    plain = replace(transcript, held_open=False)
    adapter = replace(loaded.adapter, transcript=plain)
    place = Place(tmp_path, replace(loaded, adapter=adapter))
    place.write("theirs", "mow the lawn")
    leg = replace(LEG, child_pid=os.getpid(), child_born=born(os.getpid()) or 0)
    assert place.find(leg) == ""
    assert place.find(LEG) == "theirs"
