"""A packet goes out as an AIRC handoff and comes back with what that form can carry."""

from datetime import UTC, datetime

import pytest

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.documents.packet_json import parse_packet, render_document
from agent_relay.domain.errors import UntrustedDataError
from agent_relay.packet.airc import is_airc, name_agent, parse_airc, render_airc
from tests.domain.test_packet_json import build

AT = datetime(2026, 1, 2, tzinfo=UTC)
FOREIGN: dict[str, object] = {
    "type": "handoff",
    "version": "1.0",
    "handoff_id": "handoff_1",
    "to": "@Beta_Agent",
    "from": "@gamma",
    "task": {"title": "Fix the token refresh", "intent": "Users must stay signed in", "priority": "high"},
    "context": {
        "repo": "https://example.org/a.git",
        "branch": "main",
        "files": [{"path": "auth.py", "lines": "138-155", "note": "the refresh"}, {"path": "b.py"}],
        "current_state": "The test is red.",
        "next_step": "Read line 140.",
        "blockers": ["No staging key"],
    },
    "history": {"summary": "Tried a longer timeout."},
}


def read(document: dict[str, object]) -> ResumePacket:
    """The packet it amounts to."""
    return parse_airc(document, packet_id="P9", session_id="S9", at=AT)


def test_a_foreign_handoff_becomes_a_packet() -> None:
    """Everything it says has a place; nothing it does not say is invented."""
    assert render_document(read(FOREIGN)) == {
        "schema": "agent-relay/resume-packet",
        "version": 1,
        "packet_id": "P9",
        "session_id": "S9",
        "sequence": 1,
        "created_at": "2026-01-02T00:00:00Z",
        "previous_agent": "gamma",
        "target_agent": "beta",
        "checkpoint_reason": "manual",
        "task": "Fix the token refresh\n\nUsers must stay signed in",
        "blockers": [{"id": "B1", "summary": "No staging key"}],
        "touched_files": [
            {"path": "auth.py", "status": "read", "lines": "138-155", "note": "the refresh"},
            {"path": "b.py", "status": "read"},
        ],
        "next_task": "Read line 140.",
        "git": {"root": "https://example.org/a.git", "branch": "main"},
        "narrative": (
            "The test is red.\n\nTried a longer timeout.\n\n- auth.py:138-155 — the refresh\n- b.py"
        ),
        "priority": "high",
    }


def test_a_foreign_handoff_goes_out_again_with_the_same_words() -> None:
    """Through us is no detour."""
    back = render_airc(read(FOREIGN))
    assert (back["to"], back["from"], back["type"], back["version"]) == ("beta", "gamma", "handoff", "1.0")
    assert back["task"] == {
        "title": "Fix the token refresh",
        "intent": "Fix the token refresh\n\nUsers must stay signed in",
        "priority": "high",
    }
    context = back["context"]
    assert isinstance(context, dict)
    assert context["files"] == (
        {"path": "auth.py", "lines": "138-155", "note": "the refresh"},
        {"path": "b.py", "note": "read"},
    )
    assert (context["next_step"], context["blockers"]) == ("Read line 140.", ("No staging key",))
    assert read(back).task == "Fix the token refresh\n\nUsers must stay signed in"


def test_a_packet_goes_out_with_what_the_form_has_no_field_for() -> None:
    """Rules, decisions and attempts are what saves the reader from doing it all again."""
    sent = render_airc(
        build(
            task="Make it work\nproperly",
            constraints=[{"text": "no new dependency"}],
            decisions=[{"id": "D1", "summary": "use a queue", "why": "order matters"}],
            attempts=[{"summary": "a lock", "outcome": "deadlock"}, {"summary": "a sleep"}],
            blockers=[{"id": "B1", "summary": "red", "evidence": "log.txt"}],
            plan=[{"text": "test", "status": "completed"}, {"text": "ship", "status": "in_progress"}],
            validation_state={"tests": "failed"},
            background=[{"kind": "shell", "text": "make watch"}],
            touched_files=[{"path": "a.py", "status": "modified", "added": 3}],
            narrative="Half way.",
            next_task="fix it",
            unprocessed_prompt={"text": "and now?"},
            git={"root": "/r", "branch": "main", "head": "abc"},
        )
    )
    assert sent == {
        "to": "beta",
        "from": "alpha",
        "type": "handoff",
        "version": "1.0",
        "handoff_id": "P",
        "timestamp": "2026-01-01T00:00:00+00:00",
        "task": {"title": "Make it work", "intent": "Make it work\nproperly", "priority": "medium"},
        "context": {
            "repo": "/r",
            "branch": "main",
            "files": ({"path": "a.py", "note": "modified (+3 -0)"},),
            "current_state": (
                "[x] test\n[~] ship\ntests: failed\nstill running: shell: make watch\nHalf way."
            ),
            "next_step": "fix it",
            "blockers": ("red: log.txt",),
        },
        "history": {
            "summary": (
                "Rule of the user: no new dependency\nDecided: use a queue — because order matters\n"
                "Tried: a lock — deadlock\nTried: a sleep\nNot answered yet: and now?"
            )
        },
    }


@pytest.mark.parametrize(
    ("fields", "step"),
    [
        ({"unprocessed_prompt": {"text": "and now?"}}, "Answer the user, who sent this last: and now?"),
        (
            {"next_task": "and now?", "unprocessed_prompt": {"text": "and now?"}},
            "Answer the user, who sent this last: and now?",
        ),
        ({"plan": [{"text": "a", "status": "completed"}, {"text": "b"}]}, "b"),
        ({}, "Not recorded: find it from the state of the files."),
    ],
)
def test_the_next_step_is_never_empty(fields: dict[str, object], step: str) -> None:
    """The form demands one; where none is known it says so."""
    handoff = render_airc(build(**fields))
    context = handoff["context"]
    assert isinstance(context, dict)
    assert "and now?" not in str(handoff["history"])
    assert (context["next_step"], context.get("repo")) == (step, None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"to": None}, "is not an AIRC handoff: to: "),
        ({"task": {"title": "x"}}, "task.intent: Field required"),
        ({"context": {"current_state": "x"}}, "context.next_step: Field required"),
        ({"version": "2.0"}, "of an unknown version"),
        ({"type": "text"}, "is not an AIRC handoff: type: "),
    ],
)
def test_what_is_no_such_handoff_is_refused_with_its_field(change: dict[str, object], message: str) -> None:
    """One sentence, without contents."""
    with pytest.raises(UntrustedDataError, match=message):
        read({**FOREIGN, **change})


def test_a_message_and_a_tools_arguments_are_understood_too() -> None:
    """The payload travels inside a message; the tool that sends it takes the summary at its top."""
    assert read({"id": "m", "payload": FOREIGN}) == read(FOREIGN)
    bare = {key: value for key, value in FOREIGN.items() if key in {"to", "task", "context"}}
    assert read({**bare, "history_summary": "long"}).narrative is not None
    sparse = {"task": {"title": "a", "intent": "a b"}, "context": {"current_state": " ", "next_step": "n"}}
    packet = read({"to": "someone else!", **sparse})
    assert (packet.task, packet.narrative, packet.git) == ("a b", None, None)
    assert (packet.previous_agent, packet.target_agent) == ("unknown", "unknown")
    assert parse_packet(render_document(packet)) == packet


def test_a_packet_that_says_nothing_goes_out_whole() -> None:
    """Blank texts and fields of other meaning must not stop it."""
    sent = render_airc(build(task=" \n", priority=["low"]))
    assert sent["task"] == {
        "title": "Go on with the work in this repository.",
        "intent": "Go on with the work in this repository.",
        "priority": "medium",
    }


def test_handoffs_and_packets_are_told_apart() -> None:
    """Import reads either."""
    assert is_airc(FOREIGN)
    assert is_airc({"payload": {}})
    assert not is_airc(render_document(build()))
    assert not is_airc({"task": "x"})


def test_handles_become_agents_names() -> None:
    """`@codex_agent` and `codex` are the same to the person who typed it."""
    assert [name_agent(one) for one in ("@Codex_Agent", "codex", "../x", "", "9x")] == [
        "codex",
        "codex",
        "",
        "",
        "",
    ]
