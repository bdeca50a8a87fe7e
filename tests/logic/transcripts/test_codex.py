"""The reader of Codex rollouts."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import Facts, Step, Tokens
from agent_relay.logic.transcripts.registry import READERS
from agent_relay.logic.transcripts.shape import Ancestor, Fork, Source
from tests.logic.transcripts.rows import join_lines, read_lines, read_sample

_LIMIT = read_sample("codex-limit.jsonl")
_FOLDER = "/home/user/repos/codex-0.169.0-usage-limit-mid-120x40"


def _said(facts: Facts) -> list[tuple[str, int, str]]:
    return [(one.role, one.turn, one.text) for one in facts.conversation]


def _event(kind: str, **payload: object) -> dict[str, object]:
    return {"type": "event_msg", "timestamp": "2026-11-20T10:00:00Z", "payload": {"type": kind, **payload}}


def _item(kind: str, **item: object) -> dict[str, object]:
    return _event("item_completed", item={"type": kind, **item})


def _wire(kind: str, **payload: object) -> dict[str, object]:
    return {
        "type": "response_item",
        "timestamp": "2026-11-20T10:00:00Z",
        "payload": {"type": kind, **payload},
    }


def _message(role: str, text: str) -> dict[str, object]:
    return _wire("message", role=role, content=[{"type": "input_text", "text": text}])


def _read(*records: dict[str, object]) -> Facts:
    return read_lines("codex-rollout", join_lines(*records))


def test_a_real_session_cut_by_its_limit_is_read_whole() -> None:
    """Items say the same for every model; the limit's words are in the turn's end."""
    facts = read_lines("codex-rollout", _LIMIT)
    assert facts.native_id == "01a1f88b-5a60-7a83-8757-96988228572a"
    assert facts.cwd == _FOLDER
    assert facts.model == "gpt-5.5"
    assert facts.context_window == 258400
    assert _said(facts)[:2] == [("user", 1, "What is wrong with calc.py?"), ("assistant", 1, "Looking.")]
    assert _said(facts)[-2:] == [("user", 3, "now add a test"), ("assistant", 3, "Let me add a test.")]
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
    assert [text for role, _, text in _said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "continue",
    ]
    assert facts.summary == "SUMMARY: user asked about calc.py; bug: add() subtracts; pending: fix."


def test_a_fork_is_read_with_its_parent() -> None:
    """A fork's file holds only its own turns; the task stands in the parent's, up to where it left."""
    parent = read_sample("codex-fork-parent.jsonl").split(b"\n")
    own = read_sample("codex-fork.jsonl").split(b"\n")
    reader = READERS["codex-rollout"]
    peek = reader.peek(own)
    assert peek.fork == Fork("01a1f883-6109-7861-9c55-8e7ddf188364", 24)
    facts = reader.read(Source(place="f", lines=own, ancestors=(Ancestor(parent, "p", 24),)))
    assert [text for role, _, text in _said(facts) if role == "user"] == [
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
    source = Source(place="f", lines=own, ancestors=(Ancestor(parent, "p", 14),))
    facts = READERS["codex-rollout"].read(source)
    assert [text for role, _, text in _said(facts) if role == "user"] == [
        "What is wrong with calc.py?",
        "fork here",
    ]


def test_turns_without_items_are_read_from_the_wire_records() -> None:
    """Older versions wrote only what went over the wire."""
    update = "*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n+z\n"
    patch = f"*** Begin Patch\n{update}*** Delete File: c.py\n*** End Patch"
    facts = _read(
        _message("user", "<environment_context><cwd>/p</cwd></environment_context>"),
        _message("user", "rename it"),
        _wire(
            "function_call",
            name="shell",
            call_id="1",
            arguments=json.dumps({"command": ["bash", "-lc", "pytest"]}),
        ),
        _wire(
            "function_call_output",
            call_id="1",
            output=json.dumps({"output": "boom", "metadata": {"exit_code": 2}}),
        ),
        _wire("custom_tool_call", name="apply_patch", call_id="2", input=patch),
        _wire(
            "custom_tool_call_output",
            call_id="2",
            output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.",
        ),
        _message("assistant", "Renamed."),
    )
    assert _said(facts) == [("user", 1, "rename it"), ("assistant", 1, "Renamed.")]
    assert [(one.command, one.exit_code, one.output) for one in facts.commands] == [("pytest", 2, "boom")]
    assert [(one.path, one.action, one.previous_path, one.added, one.removed) for one in facts.files] == [
        ("b.py", "renamed", "a.py", 2, 1),
        ("c.py", "deleted", None, None, None),
    ]
    assert facts.unprocessed_prompt is None


def test_scripts_are_understood_where_items_are_missing() -> None:
    """Code mode without items: the command stands as a string inside the script."""
    script = 'const r = await tools.exec_command({cmd: "make \\"all\\""});\ntext(r.output);\n'
    facts = _read(
        _message("user", "build"),
        _wire("custom_tool_call", name="exec", call_id="1", input=script),
        _wire("custom_tool_call_output", call_id="1", output=[{"type": "input_text", "text": "done"}]),
        _wire(
            "custom_tool_call",
            name="exec",
            call_id="2",
            input='tools.apply_patch("*** Begin Patch\\n*** Add File: n.txt\\n+1\\n*** End Patch")',
        ),
        _wire("custom_tool_call_output", call_id="2", output="{}"),
    )
    assert [(one.command, one.output, one.exit_code) for one in facts.commands] == [
        ('make "all"', "done", None)
    ]
    assert [(one.path, one.action, one.added) for one in facts.files] == [("n.txt", "created", 1)]


def test_a_patch_that_failed_changed_nothing() -> None:
    """A failed patch is a tool error with its words, in both forms."""
    facts = _read(
        _item("UserMessage", content=[{"type": "text", "text": "patch"}]),
        _item("FileChange", changes={"/p/a": {"type": "delete"}}, status="failed", stderr="no such context"),
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
    facts = _read(_item("FileChange", changes={"/p/a": change}, status="completed"))
    assert [(one.path, one.action, one.added, one.removed, one.previous_path) for one in facts.files] == [
        expected
    ]


def test_the_last_plan_counts() -> None:
    """`update_plan` is a wire record even where items exist."""
    plan = [{"step": "Read", "status": "completed"}, {"step": "Write", "status": "in_progress"}]
    facts = _read(
        _item("UserMessage", content=[{"type": "text", "text": "go"}]),
        _wire("function_call", name="update_plan", call_id="1", arguments=json.dumps({"plan": plan})),
        _event("task_started"),
        _item("UserMessage", content=[{"type": "text", "text": "on"}]),
    )
    assert facts.plan == (Step("Read", "completed", 1), Step("Write", "in_progress", 1))


def test_turns_rolled_back_are_left_out() -> None:
    """The user took the last turn back."""
    facts = _read(
        _event("task_started"),
        _item("UserMessage", content=[{"type": "text", "text": "one"}]),
        _event("task_started"),
        _item("UserMessage", content=[{"type": "text", "text": "two"}]),
        _event("thread_rolled_back", num_turns=1),
        _event("task_started"),
        _item("UserMessage", content=[{"type": "text", "text": "three"}]),
    )
    assert [one.text for one in facts.conversation] == ["one", "three"]


def test_an_aborted_turn_leaves_its_prompt_unprocessed() -> None:
    """The agent was stopped in the middle: nobody answered."""
    facts = _read(
        _item("UserMessage", content=[{"type": "text", "text": "long job"}]),
        _event("turn_aborted", reason="interrupted"),
    )
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "long job"


@pytest.mark.parametrize(
    "text",
    [
        "<user_instructions>always use tabs</user_instructions>",
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nnever\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted\n</turn_aborted>",
    ],
)
def test_injected_context_is_not_the_users_words(text: str) -> None:
    """Project instructions reach the successor by their own file."""
    assert _read(_message("user", text)).conversation == ()


def test_repeated_token_counts_count_once() -> None:
    """Versions without usage records re-emit the same total after every tool call."""
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3, "total_tokens": 13}
    count = _event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    assert _read(count, count).tokens == Tokens(input=6, cached=4, output=3)


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
    prompt = join_lines(_item("UserMessage", content=[{"type": "text", "text": "task"}]))
    assert read_lines("codex-rollout", prompt + line).conversation[0].text == "task"


@settings(max_examples=60, deadline=None)
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
    facts = _read(
        _item(
            "UserMessage", content=[{"type": "text", "text": "<environment_context>x</environment_context>"}]
        ),
        _item("AgentMessage", content=[]),
        _item("Reasoning", summary_text=["hm"]),
        _item("McpToolCall", status="failed", tool="search", error={"message": "no such server"}),
        _item("McpToolCall", status="completed", tool="search"),
        _item("FileChange", changes={"/p/a": {"type": "chmod"}}),
        _item("CommandExecution", command="make", exit_code=1, parsed_cmd=[{"type": "read", "path": "x"}]),
        _item("CommandExecution", command=["node", "-e", "1"], exit_code=0, aggregated_output="1"),
        _event("unknown_event"),
        {"type": "unknown_line", "payload": {}},
    )
    assert facts.conversation == ()
    assert facts.files == ()
    assert [(one.tool, one.text) for one in facts.errors] == [("search", "no such server")]
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make", 1), ("node -e 1", 0)]


def test_wire_calls_that_say_little_are_passed_over() -> None:
    """Calls of unknown tools, without a command, or without a result."""
    facts = _read(
        _message("user", "go"),
        _message("assistant", ""),
        _wire("function_call", name="view_image", call_id="1", arguments="{}"),
        _wire("function_call", name="shell", call_id="2", arguments="{torn"),
        _wire(
            "custom_tool_call", name="apply_patch", call_id="3", input="*** Begin Patch\n*** Add File: a\n+1"
        ),
        _wire(
            "custom_tool_call",
            name="exec",
            call_id="4",
            input='exec_command({cmd: "\\x"}); apply_patch("\\x")',
        ),
        _wire("reasoning", summary=[]),
        _wire("function_call", name="exec_command", call_id="5", arguments='{"cmd": "make"}'),
    )
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make", None)]
    assert facts.files == ()
    assert facts.unprocessed_prompt is not None


def test_patches_through_the_shell_are_changes_not_commands() -> None:
    """Older models called `apply_patch` in a shell."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+1\n+2\n*** End Patch"
    command = {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]}
    facts = _read(
        _message("user", "go"),
        _wire("function_call", name="shell", call_id="1", arguments=json.dumps(command)),
        _wire("function_call_output", call_id="1", output="Exit code: 0\nOutput:\nok"),
        _wire("function_call", name="apply_patch", call_id="2", arguments=json.dumps({"input": patch})),
        _wire("function_call_output", call_id="2", output="apply_patch verification failed: no context"),
    )
    assert facts.commands == ()
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("a.py", "modified", 1, 1),
        ("b.py", "created", 2, 0),
    ]
    assert [one.tool for one in facts.errors] == ["apply_patch"]


def test_a_script_that_failed_is_an_error() -> None:
    """Items do not say that the JavaScript around the tools broke."""
    facts = _read(
        _item("UserMessage", content=[{"type": "text", "text": "go"}]),
        _wire("custom_tool_call", name="exec", call_id="1", input="boom()"),
        _wire("custom_tool_call_output", call_id="1", output="Script failed\nReferenceError: boom"),
        _event("task_started"),
    )
    assert [(one.tool, one.text) for one in facts.errors] == [("exec", "Script failed\nReferenceError: boom")]


def test_a_token_count_without_totals_counts_nothing() -> None:
    """The first one of a session only carries rate limits."""
    assert _read(_event("token_count", info=None)).tokens == Tokens()
