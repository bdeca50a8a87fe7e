import json

from agent_relay.domain.facts import TodoItem, Tokens
from agent_relay.transcripts._demo import peek_demo, read_demo
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource

ROWS: list[dict[str, object]] = [
    {"type": "session", "at": "2026-11-20T18:00:00+00:00", "id": "n1", "agent": "understudy", "cwd": "/w"},
    {"type": "prompt", "at": "2026-11-20T18:00:01+00:00", "text": "make it polite"},
    {"type": "plan", "steps": [{"text": "greet", "status": "in_progress"}]},
    {"type": "say", "text": "an f-string will do"},
    {
        "type": "edit",
        "path": "greet.py",
        "action": "modified",
        "added": 1,
        "removed": 1,
        "diff": "@@ -1 +1 @@\n-old\n+new",
    },
    {"type": "run", "command": "pytest -q", "exit_code": 1, "output": "1 failed"},
    {"type": "error", "tool": "run", "text": "no end"},
    {"type": "usage", "input": 10, "output": 2},
    {"type": "usage", "input": 5, "output": 1},
    {"type": "done"},
    {"type": "prompt", "at": "2026-11-20T18:05:00+00:00", "text": "and nobody?"},
    {"type": "limit", "at": "2026-11-20T18:05:01+00:00", "text": "You've hit your session limit"},
]


def _lines(rows: list[dict[str, object]]) -> list[bytes]:
    return [json.dumps(row).encode() + b"\n" for row in rows]


def test_everything_the_demo_agent_wrote_becomes_a_fact() -> None:
    """The demo shows a packet; it must be built the same way as everybody's."""
    facts = read_demo(TranscriptSource(place="t.jsonl", lines=_lines(ROWS)))
    assert (facts.agent, facts.native_id, facts.cwd) == ("understudy", "n1", "/w")
    assert [(said.role, said.text) for said in facts.conversation] == [
        ("user", "make it polite"),
        ("assistant", "an f-string will do"),
        ("user", "and nobody?"),
    ]
    assert [(change.path, change.added, change.removed) for change in facts.files] == [("greet.py", 1, 1)]
    assert (facts.files[0].removed_lines, facts.files[0].added_lines) == (("old",), ("new",))
    assert [(run.command, run.exit_code) for run in facts.commands] == [("pytest -q", 1)]
    assert facts.plan == (TodoItem("greet", "in_progress", 1),)
    assert facts.tokens == Tokens(input=15, output=3)
    assert [error.text for error in facts.errors] == ["no end"]


def test_a_prompt_met_by_a_limit_is_unprocessed() -> None:
    """These are the words the successor must get verbatim."""
    facts = read_demo(TranscriptSource(lines=_lines(ROWS)))
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "and nobody?"
    assert facts.limit_text == "You've hit your session limit"
    assert read_demo(TranscriptSource(lines=_lines(ROWS[:10]))).unprocessed_prompt is None


def test_torn_and_foreign_lines_cost_only_themselves() -> None:
    """A killed agent leaves half a line; the rest of its work must still reach the successor."""
    lines = [*_lines(ROWS[:2]), b'{"type": "say", "te', b"[1]\n", b"\xff\n", b'{"type": 7}\n']
    facts = read_demo(TranscriptSource(lines=lines))
    assert (len(facts.conversation), facts.skipped_lines) == (1, 4)


def test_a_peek_names_the_session_without_reading_it_all() -> None:
    """Finding the sessions of a folder looks at many files."""
    peek = peek_demo(_lines(ROWS))
    assert (peek.native_id, peek.cwd, peek.title, peek.is_main) == ("n1", "/w", "make it polite", True)
    assert not peek_demo([b"{}\n"]).is_main


def test_the_adapters_find_the_reader_by_name() -> None:
    """The name in `adapter.toml` is the only link between the two."""
    assert READERS["demo-jsonl"].read is read_demo
