"""The reader of Codex rollouts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import TodoItem, Tokens
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import Ancestor, ForkPoint, TranscriptSource
from tests.transcripts.rows import (
    codex_event,
    codex_item,
    codex_wire,
    join_lines,
    list_said,
    read_lines,
    read_rollout,
    read_sample,
)

_LIMIT = read_sample("codex-limit.jsonl")
_FOLDER = "/home/user/repos/codex-0.169.0-usage-limit-mid-120x40"


def test_a_real_session_cut_by_its_limit_is_read_whole() -> None:
    """Items say the same for every model; the limit's words are in the turn's end."""
    facts = read_lines("codex-rollout", _LIMIT)
    assert facts.native_id == "01a1f88b-5a60-7a83-8757-96988228572a"
    assert facts.cwd == _FOLDER
    assert facts.model == "gpt-5.5"
    assert facts.context_window == 258400
    assert list_said(facts)[:2] == [("user", 1, "What is wrong with calc.py?"), ("assistant", 1, "Looking.")]
    assert list_said(facts)[-2:] == [("user", 3, "now add a test"), ("assistant", 3, "Let me add a test.")]
    assert [(one.command, one.exit_code, one.output) for one in facts.commands][-1] == (
        "python3 calc.py",
        0,
        "5\n",
    )
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("calc.py", "read", None, None),
        (f"{_FOLDER}/calc.py", "modified", 1, 1),
        (f"{_FOLDER}/test_calc.py", "created", 4, 0),
    ]
    assert facts.limit_text.startswith("You\u2019ve hit your usage limit. Upgrade to Pro")
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "now add a test"


def test_usage_leaves_cached_tokens_out_of_the_input() -> None:
    """Six responses of 9,000 input tokens, 7,000 of them cached each."""
    facts = read_lines("codex-rollout", _LIMIT)
    assert facts.tokens == Tokens(input=12000, cached=42000, output=720, reasoning=384)


def test_code_mode_sessions_say_the_same() -> None:
    """Newer models call tools from JavaScript; commands and changes are found all the same."""
    facts = read_lines("codex-rollout", read_sample("codex-codemode.jsonl"))
    assert [one.command for one in facts.commands] == ["cat calc.py", "python3 calc.py && ls -la"]
    assert [(one.action, one.added, one.removed) for one in facts.files] == [
        ("read", None, None),
        ("modified", 1, 1),
    ]
    assert facts.unprocessed_prompt is None


def test_history_before_a_compaction_survives() -> None:
    """The first prompt stands before the compaction, whose text is only the summary."""
    facts = read_lines("codex-rollout", read_sample("codex-compact.jsonl"))
    assert [text for role, _, text in list_said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "continue",
    ]
    assert facts.summary == "SUMMARY: user asked about calc.py; bug: add() subtracts; pending: fix."
    assert (facts.summary_turn, facts.summary_at is not None) == (1, True)


def test_a_fork_is_read_with_its_parent() -> None:
    """A fork's file holds only its own turns; the task stands in the parent's, up to where it left."""
    parent = read_sample("codex-fork-parent.jsonl").split(b"\n")
    own = read_sample("codex-fork.jsonl").split(b"\n")
    reader = READERS["codex-rollout"]
    peek = reader.peek(own)
    assert peek.fork == ForkPoint("01a1f883-6109-7861-9c55-8e7ddf188364", 24)
    facts = reader.read(TranscriptSource(place="f", lines=own, ancestors=(Ancestor(parent, "p", 24),)))
    assert [text for role, _, text in list_said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "and now?",
        "fork here",
    ]
    assert facts.native_id == "01a1f883-64cd-7d71-9cce-99967dd25b5c"
    assert facts.tokens == Tokens(input=2000, cached=7000, output=120, reasoning=64)


def test_a_parents_turns_after_the_fork_do_not_count() -> None:
    """The parent went on by itself; its later turns belong to another conversation."""
    parent = read_sample("codex-fork-parent.jsonl").split(b"\n")
    own = read_sample("codex-fork.jsonl").split(b"\n")
    source = TranscriptSource(place="f", lines=own, ancestors=(Ancestor(parent, "p", 14),))
    facts = READERS["codex-rollout"].read(source)
    assert [text for role, _, text in list_said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "fork here",
    ]


def test_a_patch_that_failed_changed_nothing() -> None:
    """A failed patch is a tool error with its words, in both forms."""
    facts = read_rollout(
        codex_item("UserMessage", content=[{"type": "text", "text": "patch"}]),
        codex_item(
            "FileChange", changes={"/p/a": {"type": "delete"}}, status="failed", stderr="no such context"
        ),
    )
    assert facts.files == ()
    assert [(one.tool, one.text) for one in facts.errors] == [("apply_patch", "no such context")]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"type": "delete", "content": "a\nb\n"}, ("/p/a", "deleted", 0, 2, None)),
        (
            {"type": "update", "unified_diff": "@@ -1 +1 @@\n-x\n+y", "move_path": "/p/b"},
            ("/p/b", "renamed", 1, 1, "/p/a"),
        ),
        ({"type": "add", "content": "no newline"}, ("/p/a", "created", 1, 0, None)),
        ({"type": "update", "unified_diff": "@@ -1 +1 @@\n---x\n"}, ("/p/a", "modified", 0, 1, None)),
    ],
)
def test_every_kind_of_change_is_counted(change: dict[str, object], expected: tuple[object, ...]) -> None:
    """Lines that look like file headers inside a hunk are lines."""
    facts = read_rollout(codex_item("FileChange", changes={"/p/a": change}, status="completed"))
    assert [(one.path, one.action, one.added, one.removed, one.previous_path) for one in facts.files] == [
        expected
    ]


def test_the_last_plan_counts() -> None:
    """`update_plan` is a wire record even where items exist."""
    plan = [{"step": "Read", "status": "completed"}, {"step": "Write", "status": "in_progress"}]
    facts = read_rollout(
        codex_item("UserMessage", content=[{"type": "text", "text": "go"}]),
        codex_wire("function_call", name="update_plan", call_id="1", arguments=json.dumps({"plan": plan})),
        codex_event("task_started"),
        codex_item("UserMessage", content=[{"type": "text", "text": "on"}]),
    )
    assert facts.plan == (TodoItem("Read", "completed", 1), TodoItem("Write", "in_progress", 1))


def test_turns_rolled_back_are_left_out() -> None:
    """The user took the last turn back."""
    facts = read_rollout(
        codex_event("task_started"),
        codex_item("UserMessage", content=[{"type": "text", "text": "one"}]),
        codex_event("task_started"),
        codex_item("UserMessage", content=[{"type": "text", "text": "two"}]),
        codex_event("thread_rolled_back", num_turns=1),
        codex_event("task_started"),
        codex_item("UserMessage", content=[{"type": "text", "text": "three"}]),
    )
    assert [one.text for one in facts.conversation] == ["one", "three"]


def test_an_aborted_turn_leaves_its_prompt_unprocessed() -> None:
    """The agent was stopped in the middle: nobody answered."""
    facts = read_rollout(
        codex_item("UserMessage", content=[{"type": "text", "text": "long job"}]),
        codex_event("turn_aborted", reason="interrupted"),
    )
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "long job"


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b'{"type":"event_msg","payload":{"type":"item_completed","item":7}}',
        b'{"type":"event_msg","payload":{"type":"item_completed","item":{"type":"FileChange","changes":[1]}}}',
        b'{"type":"response_item","payload":null}',
        b'{"type":"event_msg","payload":{"type":"thread_rolled_back","num_turns":-5}}',
        b'{"type":"event_msg","payload":{"type":"task_complete","error":"words"}}',
    ],
)
def test_a_hostile_line_harms_nothing_else(line: bytes) -> None:
    """Whatever one line holds, the prompt before it is still found."""
    prompt = join_lines(codex_item("UserMessage", content=[{"type": "text", "text": "task"}]))
    assert read_lines("codex-rollout", prompt + line).conversation[0].text == "task"


@settings(max_examples=60)
@given(st.integers(min_value=0, max_value=len(_LIMIT)))
def test_a_file_torn_anywhere_keeps_what_came_before(cut: int) -> None:
    """A growing or torn file never raises and never loses an earlier fact."""
    whole = read_lines("codex-rollout", _LIMIT)
    torn = read_lines("codex-rollout", _LIMIT[:cut])
    complete = _LIMIT[:cut].count(b"\n")
    kept = [one.text for one in whole.conversation if int(one.place[2:]) <= complete]
    assert [one.text for one in torn.conversation][: len(kept)] == kept
    commands = [one for one in whole.commands if int(one.place[2:]) <= complete]
    assert list(torn.commands)[: len(commands)] == commands


def test_a_peek_tells_a_subagent_from_a_session() -> None:
    """Adoption must never offer a subagent's thread as the user's session."""
    reader = READERS["codex-rollout"]
    assert reader.peek(_LIMIT.split(b"\n")).is_main
    meta = {"type": "session_meta", "payload": {"id": "x", "cwd": "/p", "source": {"subagent": "review"}}}
    assert not reader.peek([json.dumps(meta).encode()]).is_main


def test_items_that_say_little_are_passed_over() -> None:
    """Empty messages, reasoning, unknown changes and interrupted waits leave no trace."""
    facts = read_rollout(
        codex_item(
            "UserMessage", content=[{"type": "text", "text": "<environment_context>x</environment_context>"}]
        ),
        codex_item("AgentMessage", content=[]),
        codex_item("Reasoning", summary_text=["hm"]),
        codex_item("McpToolCall", status="failed", tool="search", error={"message": "no such server"}),
        codex_item("McpToolCall", status="completed", tool="search"),
        codex_item("FileChange", changes={"/p/a": {"type": "chmod"}}),
        codex_item(
            "CommandExecution", command="make", exit_code=1, parsed_cmd=[{"type": "read", "path": "x"}]
        ),
        codex_item("CommandExecution", command=["node", "-e", "1"], exit_code=0, aggregated_output="1"),
        codex_event("unknown_event"),
        {"type": "unknown_line", "payload": {}},
    )
    assert facts.conversation == ()
    assert facts.files == ()
    assert [(one.tool, one.text) for one in facts.errors] == [("search", "no such server")]
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make", 1), ("node -e 1", 0)]
