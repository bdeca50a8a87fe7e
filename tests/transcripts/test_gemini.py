"""The reader of Gemini CLI's session files."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.facts import Facts, TodoItem, Tokens
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource
from tests.transcripts.rows import join_lines, read_lines, read_sample

_LIMIT = read_sample("gemini-limit.jsonl")
_HEADER = {"sessionId": "s1", "startTime": "2026-11-20T10:00:00Z", "kind": "main"}


def _said(facts: Facts) -> list[tuple[str, int, str]]:
    return [(one.role, one.turn, one.text) for one in facts.conversation]


def _message(number: str, kind: str, text: str, **fields: object) -> dict[str, object]:
    return {"id": number, "timestamp": "2026-11-20T10:00:00Z", "type": kind, "content": text, **fields}


def _call(name: str, output: str = "", error: str = "", status: str = "success", **fields: object) -> object:
    response = {"output": output} if output else {"error": error}
    result = [{"functionResponse": {"name": name, "response": response}}]
    return {"id": name, "name": name, "status": status, "result": result, **fields}


def _read(*records: dict[str, object]) -> Facts:
    return read_lines("gemini-jsonl", join_lines(_HEADER, *records))


def test_a_real_session_cut_by_its_limit_is_read_whole() -> None:
    """The limit's row comes after the dialog; the CLI's own prompt after it is nobody's words."""
    facts = read_lines("gemini-jsonl", _LIMIT)
    assert facts.native_id == "2b04873e-dd27-4c84-860f-ec560fe601b0"
    assert facts.cwd == "/home/user/homes/g-daily-quota-mid-session-120/proj"
    assert facts.model == "gemini-3.1-pro-preview-customtools"
    assert _said(facts) == [
        ("user", 1, "what is this?"),
        ("assistant", 1, "This is a tiny demo project with app.py."),
        ("user", 2, "fix add"),
        ("assistant", 2, "I fixed add()."),
        ("user", 3, "run it and then write tests"),
    ]
    assert [(one.command, one.output, one.exit_code) for one in facts.commands] == [
        ("python3 app.py", "5", 0)
    ]
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("/home/user/homes/g-daily-quota-mid-session-120/proj/app.py", "modified", 1, 1)
    ]
    assert facts.limit_text.startswith("[API Error: You have exhausted your daily quota on this model.]")
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "run it and then write tests"
    assert facts.tokens == Tokens(input=19616, cached=16384, output=243, reasoning=228)


def test_the_todo_list_is_the_plan() -> None:
    """Models that keep a list write it whole each time."""
    facts = read_lines("gemini-jsonl", read_sample("gemini-edit.jsonl"))
    assert facts.plan == (TodoItem("Fix add()", "completed", 1), TodoItem("Run app.py", "completed", 1))


def test_a_later_record_replaces_the_one_with_its_id() -> None:
    """Tool calls arrive by writing the message again."""
    call = _call("read_file", "text", args={"file_path": "/p/a"})
    facts = _read(
        _message("1", "user", "look"),
        _message("2", "gemini", "Looking."),
        _message("2", "gemini", "Looking.", toolCalls=[call]),
    )
    assert _said(facts) == [("user", 1, "look"), ("assistant", 1, "Looking.")]
    assert [(one.path, one.action) for one in facts.files] == [("/p/a", "read")]
    assert facts.unprocessed_prompt is not None


def test_a_rewind_takes_messages_back() -> None:
    """What the user took back must not come back."""
    facts = _read(
        _message("1", "user", "one"),
        _message("2", "gemini", "first"),
        _message("3", "user", "two"),
        {"$rewindTo": "3"},
        {"$rewindTo": "unknown"},
        _message("4", "user", "three"),
    )
    assert [text for _, _, text in _said(facts)] == ["one", "first", "three"]


def test_history_before_a_compression_survives() -> None:
    """Compression rewrites the list: its summary is the agent's, the dropped prompts stay the user's."""
    rewritten = [
        _message("c", "user", "<session_context>\n- **Workspace Directories:**\n  - /p\n</session_context>"),
        _message("n1", "user", "<state_snapshot>all done</state_snapshot>"),
        _message("n2", "gemini", "Got it. Thanks for the additional context!"),
        _message("n3", "user", "one"),
    ]
    facts = _read(
        {"$set": {"messages": rewritten[:1]}},
        _message("1", "user", "one"),
        _message("2", "gemini", "first"),
        {"$set": {"messages": rewritten}},
        _message("3", "user", "two"),
    )
    assert [text for _, _, text in _said(facts)] == ["one", "first", "two"]
    assert (facts.summary, facts.summary_turn) == ("<state_snapshot>all done</state_snapshot>", 1)
    assert facts.cwd == "/p"


def test_what_the_user_typed_counts_not_what_was_inlined() -> None:
    """`@file` puts the file's text into the content; the prompt itself is kept for display."""
    facts = _read(_message("1", "user", "Read @a and never stop", displayContent="Read @a"))
    assert _said(facts) == [("user", 1, "Read @a")]


@pytest.mark.parametrize(
    ("output", "status", "code", "text"),
    [
        ("Output: ok\nProcess Group PGID: 7", "success", 0, "ok"),
        ("Output: boom\nExit Code: 2\nProcess Group PGID: 7", "success", 2, "boom"),
        ("Output: x\nSignal: 9", "success", None, "x"),
        ("Output: (empty)\nExit Code: 5\nProcess Group PGID: 7\n</untrusted_context>", "success", 5, ""),
        ("Output: Exit Code: 5\nProcess Group PGID: 7", "success", 0, "Exit Code: 5"),
        ("Output: (empty)\nProcess Group PGID: 7", "success", 0, ""),
        (
            "Output: x failed\nError: Cannot find module './a'\nExit Code: 1\nProcess Group PGID: 7",
            "success",
            1,
            "x failed\nError: Cannot find module './a'",
        ),
        ("Output: Error: no such key\nProcess Group PGID: 7", "success", 0, "Error: no such key"),
        ("Output: a\nSignal: lost\nProcess Group PGID: 7", "success", 0, "a\nSignal: lost"),
        ("Output: (empty)\nError: spawn bash ENOENT\nExit Code: 1", "success", 1, "Error: spawn bash ENOENT"),
        (
            "Output: a\nExit Code: 143\nSignal: 15\nBackground PIDs: 8, 9\nProcess Group PGID: 7",
            "success",
            143,
            "a",
        ),
        ("", "error", None, "no such tool"),
    ],
)
def test_the_exit_code_is_read_from_the_output(output: str, status: str, code: int | None, text: str) -> None:
    """The status stands in text, only where it is not 0, and what the command printed may look like it."""
    call = _call("run_shell_command", output, "no such tool", status, args={"command": "make"})
    facts = _read(_message("1", "user", "go"), _message("2", "gemini", "", toolCalls=[call]))
    assert [(one.command, one.exit_code) for one in facts.commands] == [("make", code)]
    assert facts.commands[0].output == text


def test_failed_and_cancelled_calls_change_nothing() -> None:
    """A refused edit is an error; a command the user cancelled did not run."""
    calls = [
        _call("replace", "", "0 occurrences found", "error", args={"file_path": "/p/a"}),
        _call("write_file", "", "", "cancelled", args={"file_path": "/p/b"}),
        _call("run_shell_command", "", "", "cancelled", args={"command": "rm x"}),
    ]
    facts = _read(_message("1", "user", "go"), _message("2", "gemini", "", toolCalls=calls))
    assert facts.files == facts.commands == ()
    assert [(one.tool, one.text) for one in facts.errors] == [
        ("replace", "0 occurrences found"),
        ("write_file", "cancelled"),
        ("run_shell_command", "rm x\ncancelled"),
    ]


def test_files_are_counted_in_every_form_an_edit_takes() -> None:
    """Statistics, a diff, the strings, or the content: whatever is there."""
    stat = {"diffStat": {"model_added_lines": 2, "model_removed_lines": 1, "user_added_lines": 1}}
    calls = [
        _call(
            "replace",
            "ok",
            args={"file_path": "/a", "old_string": "x", "new_string": "y"},
            resultDisplay=stat,
        ),
        _call("replace", "ok", args={"file_path": "/b", "old_string": "x", "new_string": "y\nz"}),
        _call("replace", "ok", args={"file_path": "/c", "old_string": "", "new_string": "n"}),
        _call(
            "write_file",
            "Successfully created and wrote to new file: /d",
            args={"file_path": "/d", "content": "1\n2"},
        ),
        _call(
            "write_file",
            "overwrote",
            args={"file_path": "/e"},
            resultDisplay={"fileDiff": "@@ -1 +1 @@\n-a\n+b"},
        ),
    ]
    facts = _read(_message("1", "user", "go"), _message("2", "gemini", "", toolCalls=calls))
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("/a", "modified", 3, 1),
        ("/b", "modified", 2, 1),
        ("/c", "created", 1, 0),
        ("/d", "created", 2, 0),
        ("/e", "modified", 1, 1),
    ]


def test_a_server_in_the_background_is_listed() -> None:
    """It may still hold its port."""
    call = _call("run_shell_command", "PID: 7", args={"command": "serve", "is_background": True})
    facts = _read(_message("1", "user", "go"), _message("2", "gemini", "", toolCalls=[call]))
    assert facts.background == ("shell: serve",)
    assert facts.commands[0].exit_code is None


def test_a_prompt_the_user_cancelled_gives_way() -> None:
    """A cancelled request is the user's own decision."""
    facts = _read(
        _message("1", "user", "long"),
        _message("2", "info", "Request cancelled."),
        _message("3", "user", "short"),
    )
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "short"


def test_a_deleted_session_is_known_by_its_prompts() -> None:
    """The CLI deletes a session without an answer when it quits; what was asked stays in its log."""
    prompts = (
        {"sessionId": "s1", "type": "user", "message": "port it", "timestamp": "2026-11-20T10:00:00Z"},
        {"sessionId": "s1", "type": "user", "message": "/quit"},
        {"sessionId": "other", "type": "user", "message": "no"},
    )
    facts = READERS["gemini-jsonl"].read(
        TranscriptSource(place="logs.json", native_id="s1", cwd="/p", prompts=prompts)
    )
    assert _said(facts) == [("user", 1, "port it")]
    assert facts.unprocessed_prompt is not None
    assert facts.cwd == "/p"


def test_a_subagents_file_is_no_session() -> None:
    """Adoption must never offer it."""
    peek = READERS["gemini-jsonl"].peek([json.dumps({**_HEADER, "kind": "subagent"}).encode()])
    assert not peek.is_main
    assert READERS["gemini-jsonl"].peek(_LIMIT.split(b"\n")).title == "what is this?"


@pytest.mark.parametrize(
    "line",
    [
        b"\xff",
        b"{}",
        b'{"$set":{"messages":[1,null,{"id":7}]}}',
        b'{"$rewindTo":["x"]}',
        b'{"id":"x","type":"gemini","content":7,"toolCalls":[1,{"name":"replace","args":[]}]}',
        b'{"id":"x","type":"gemini","tokens":{"input":-5}}',
    ],
)
def test_a_hostile_line_harms_nothing_else(line: bytes) -> None:
    """Whatever one line holds, the prompt before it is still found."""
    data = join_lines(_HEADER, _message("1", "user", "task")) + line
    assert read_lines("gemini-jsonl", data).conversation[0].text == "task"


@settings(max_examples=60)
@given(st.integers(min_value=0, max_value=len(_LIMIT)))
def test_a_file_torn_anywhere_keeps_what_came_before(cut: int) -> None:
    """A growing or torn file never raises and never loses an earlier fact."""
    whole = [
        one.text
        for one in read_lines("gemini-jsonl", _LIMIT).conversation
        if int(one.place[2:]) <= _LIMIT[:cut].count(b"\n")
    ]
    torn = [one.text for one in read_lines("gemini-jsonl", _LIMIT[:cut]).conversation]
    assert torn[: len(whole)] == whole


def test_a_call_still_running_says_nothing_yet() -> None:
    """It is written again when it has ended."""
    call = _call("replace", "ok", status="executing", args={"file_path": "/p/a"})
    other = _call("google_web_search", "ok")
    facts = _read(_message("1", "user", "go"), _message("2", "gemini", "", toolCalls=[call, other]))
    assert facts.files == ()
    assert facts.errors == ()


def test_the_turns_that_the_user_broke_off_are_known() -> None:
    """What such a turn did is half of what was asked for."""
    facts = _read(
        _message("1", "user", "one"),
        _message("2", "info", "Request cancelled."),
        _message("3", "user", "two"),
        _message("4", "gemini", "done"),
        _message("5", "user", "three"),
        _message("6", "info", "Request cancelled."),
    )
    assert facts.interrupted_turns == (1, 3)
