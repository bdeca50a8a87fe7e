"""The published schema of `chat --json`."""

import pytest
from jsonschema import Draft202012Validator, ValidationError

from agent_relay.domain.protocol.run_output import ChatOver, ChatStarted, Text, TurnNext, build_chat_schema


def test_the_schema_allows_the_lines_of_a_chat_and_of_its_turns() -> None:
    """One schema for every line that may come."""
    allowed = Draft202012Validator(build_chat_schema())
    for line in (
        ChatStarted(session="S", agents=("ann", "bob"), folder="/r", at="2026-11-21T18:20:00+00:00"),
        TurnNext(agent="ann", speaker="cas", number=1),
        Text(leg="L", agent="cas", text="hello"),
        ChatOver(session="S", outcome="agreed", turns=2, message="→ Everybody agreed after 2 turns."),
    ):
        allowed.validate(line.model_dump(mode="json"))
    with pytest.raises(ValidationError):
        allowed.validate({"type": "chat-end", "session": "S", "outcome": "bored", "turns": 2, "message": ""})
