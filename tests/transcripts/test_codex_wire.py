"""Codex rollouts of versions and turns that hold only what went over the wire."""

import json

from agent_relay.domain.facts import Tokens
from tests.transcripts.rows import (
    codex_event,
    codex_item,
    codex_message,
    codex_wire,
    list_said,
    read_rollout,
)


def test_turns_without_items_are_read_from_the_wire_records() -> None:
    """Older versions wrote only what went over the wire."""
    update = "*** Update File: a.py\n*** Move to: b.py\n@@\n-x\n+y\n+z\n"
    patch = f"*** Begin Patch\n{update}*** Delete File: c.py\n*** End Patch"
    facts = read_rollout(
        codex_message("user", "<environment_context><cwd>/p</cwd></environment_context>"),
        codex_message("user", "rename it"),
        codex_wire(
            "function_call",
            name="shell",
            call_id="1",
            arguments=json.dumps({"command": ["bash", "-lc", "pytest"]}),
        ),
        codex_wire(
            "function_call_output",
            call_id="1",
            output=json.dumps({"output": "boom", "metadata": {"exit_code": 2}}),
        ),
        codex_wire("custom_tool_call", name="apply_patch", call_id="2", input=patch),
        codex_wire(
            "custom_tool_call_output",
            call_id="2",
            output="Exit code: 0\nWall time: 0 seconds\nOutput:\nSuccess.",
        ),
        codex_message("assistant", "Renamed."),
    )
    assert list_said(facts) == [("user", 1, "rename it"), ("assistant", 1, "Renamed.")]
    assert [(one.command, one.exit_code, one.output) for one in facts.commands] == [("pytest", 2, "boom")]
    assert [(one.path, one.action, one.previous_path, one.added, one.removed) for one in facts.files] == [
        ("b.py", "renamed", "a.py", 2, 1),
        ("c.py", "deleted", None, None, None),
    ]
    assert facts.unprocessed_prompt is None


def test_scripts_are_understood_where_items_are_missing() -> None:
    """Code mode without items: the command stands as a string inside the script."""
    script = 'const r = await tools.exec_command({cmd: "make \\"all\\""});\ntext(r.output);\n'
    facts = read_rollout(
        codex_message("user", "build"),
        codex_wire("custom_tool_call", name="exec", call_id="1", input=script),
        codex_wire("custom_tool_call_output", call_id="1", output=[{"type": "input_text", "text": "done"}]),
        codex_wire(
            "custom_tool_call",
            name="exec",
            call_id="2",
            input='tools.apply_patch("*** Begin Patch\\n*** Add File: n.txt\\n+1\\n*** End Patch")',
        ),
        codex_wire("custom_tool_call_output", call_id="2", output="{}"),
    )
    assert [(one.command, one.output, one.exit_code) for one in facts.commands] == [
        ('make "all"', "done", None)
    ]
    assert [(one.path, one.action, one.added) for one in facts.files] == [("n.txt", "created", 1)]


def test_injected_context_is_not_the_users_words() -> None:
    """Project instructions reach the successor by their own file."""
    rows = [
        "<user_instructions>always use tabs</user_instructions>",
        "# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nnever\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted\n</turn_aborted>",
    ]
    assert [text for text in rows if read_rollout(codex_message("user", text)).conversation != ()] == []


def test_repeated_token_counts_count_once() -> None:
    """Versions without usage records re-emit the same total after every tool call."""
    usage = {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 3, "total_tokens": 13}
    count = codex_event("token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    assert read_rollout(count, count).tokens == Tokens(input=6, cached=4, output=3)


def test_wire_calls_that_say_little_are_passed_over() -> None:
    """Calls of unknown tools, without a command, or without a result."""
    facts = read_rollout(
        codex_message("user", "go"),
        codex_message("assistant", ""),
        codex_wire("function_call", name="view_image", call_id="1", arguments="{}"),
        codex_wire("function_call", name="shell", call_id="2", arguments="{torn"),
        codex_wire(
            "custom_tool_call", name="apply_patch", call_id="3", input="*** Begin Patch\n*** Add File: a\n+1"
        ),
        codex_wire(
            "custom_tool_call",
            name="exec",
            call_id="4",
            input='exec_command({cmd: "\\x"}); apply_patch("\\x")',
        ),
        codex_wire("reasoning", summary=[]),
        codex_wire("function_call", name="exec_command", call_id="5", arguments='{"cmd": "make"}'),
    )
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make", None)]
    assert facts.files == ()
    assert facts.unprocessed_prompt is not None


def test_patches_through_the_shell_are_changes_not_commands() -> None:
    """Older models called `apply_patch` in a shell."""
    patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Add File: b.py\n+1\n+2\n*** End Patch"
    command = {"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]}
    facts = read_rollout(
        codex_message("user", "go"),
        codex_wire("function_call", name="shell", call_id="1", arguments=json.dumps(command)),
        codex_wire("function_call_output", call_id="1", output="Exit code: 0\nOutput:\nok"),
        codex_wire("function_call", name="apply_patch", call_id="2", arguments=json.dumps({"input": patch})),
        codex_wire("function_call_output", call_id="2", output="apply_patch verification failed: no context"),
    )
    assert facts.commands == ()
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("a.py", "modified", 1, 1),
        ("b.py", "created", 2, 0),
    ]
    assert [one.tool for one in facts.errors] == ["apply_patch"]


def test_a_script_that_failed_is_an_error() -> None:
    """Items do not say that the JavaScript around the tools broke."""
    facts = read_rollout(
        codex_item("UserMessage", content=[{"type": "text", "text": "go"}]),
        codex_wire("custom_tool_call", name="exec", call_id="1", input="boom()"),
        codex_wire("custom_tool_call_output", call_id="1", output="Script failed\nReferenceError: boom"),
        codex_event("task_started"),
    )
    assert [(one.tool, one.text) for one in facts.errors] == [("exec", "Script failed\nReferenceError: boom")]


def test_a_token_count_without_totals_counts_nothing() -> None:
    """The first one of a session only carries rate limits."""
    assert read_rollout(codex_event("token_count", info=None)).tokens == Tokens()
