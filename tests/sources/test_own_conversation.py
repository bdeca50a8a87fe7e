"""Which of a folder's conversations is a leg's own, where the agent did not say."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.sources.native_sessions import ConversationOwner, find_transcript

SPEC = Transcript(reader="codex-rollout", folder="{home}/sessions", pattern="*.jsonl", held_open=True)
SINCE = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
BEFORE, AFTER = "2026-11-20T09:00:00Z", "2026-11-20T10:05:00Z"


def write(home: Path, name: str, begun: str, *, said: str = "hello", at: int = 1_800_000_000) -> str:
    """A conversation of the folder `/p`, with one prompt."""
    path = home / "sessions" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    content = [{"type": "input_text", "text": said}]
    rows = [
        {
            "type": "session_meta",
            "timestamp": begun,
            "payload": {"id": name, "cwd": "/p", "timestamp": begun},
        },
        {
            "type": "response_item",
            "timestamp": begun,
            "payload": {"type": "message", "role": "user", "content": content},
        },
    ]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    os.utime(path, (at, at))
    return str(path)


def find(home: Path, owner: ConversationOwner) -> str:
    """The id of the conversation that is the owner's; empty for none."""
    found = find_transcript(SPEC, cwd="/p", since=SINCE, home=str(home), environ={}, owner=owner)
    return found.native_id if found is not None else ""


def test_what_the_agent_has_open_is_its_own_however_new_another_is(tmp_path: Path) -> None:
    """The plain agent beside ours may have spoken last."""
    ours = write(tmp_path, "ours", AFTER)
    write(tmp_path, "newer", AFTER, at=1_800_000_100)
    with open(ours, "rb"):
        assert find(tmp_path, ConversationOwner(os.getpid())) == "ours"


def test_an_agent_that_has_none_open_has_none(tmp_path: Path) -> None:
    """Nobody asked it anything yet: the newest of the folder is somebody else's."""
    write(tmp_path, "theirs", AFTER)
    assert find(tmp_path, ConversationOwner(os.getpid())) == ""


def test_of_an_agent_that_is_gone_what_was_begun_within_its_leg_counts_first(tmp_path: Path) -> None:
    """An older conversation that goes on beside ours is older than the leg."""
    write(tmp_path, "ours", AFTER)
    write(tmp_path, "older", BEFORE, at=1_800_000_100)
    assert find(tmp_path, ConversationOwner()) == "ours"


def test_an_older_one_that_was_gone_on_with_is_taken_where_it_is_the_only_one(tmp_path: Path) -> None:
    """A user may choose a conversation by the agent's own words."""
    write(tmp_path, "older", BEFORE)
    assert find(tmp_path, ConversationOwner()) == "older"


def test_another_legs_conversation_is_not_taken(tmp_path: Path) -> None:
    """The journal knows whose it is."""
    write(tmp_path, "first-leg", AFTER)
    assert find(tmp_path, ConversationOwner(others=frozenset({"first-leg"}))) == ""


def test_what_was_typed_tells_it_from_another_of_the_same_time(tmp_path: Path) -> None:
    """The task that relay gave stands in one of them only, whatever lines it was folded into."""
    write(tmp_path, "ours", AFTER, said="paint the\n  shed")
    write(tmp_path, "theirs", AFTER, said="mow the lawn", at=1_800_000_100)
    assert find(tmp_path, ConversationOwner(words=("paint the shed",))) == "ours"


def test_two_that_nothing_tells_apart_are_not_guessed_between(tmp_path: Path) -> None:
    """A stranger's work in the packet is worse than a packet that says that it has none."""
    write(tmp_path, "one", AFTER)
    write(tmp_path, "two", AFTER, at=1_800_000_100)
    with pytest.raises(RelayError, match="2 conversations in this folder may be this one's"):
        find(tmp_path, ConversationOwner())
