"""The reader of opencode's sessions."""

import json
from collections.abc import Mapping

import pytest

from agent_relay.domain.facts import Facts, TodoItem, Tokens
from agent_relay.transcripts._opencode import read_opencode, unpack_export
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource

_SESSION = {"id": "ses_1", "directory": "/p", "time_created": 1795171297372}


def _tool(name: str, status: str = "completed", **state: object) -> dict[str, object]:
    return {"type": "tool", "tool": name, "state": {"status": status, **state}}


def _text(text: str, **fields: object) -> dict[str, object]:
    return {"type": "text", "text": text, **fields}


def _read(*turns: tuple[Mapping[str, object], list[dict[str, object]]], **session: object) -> Facts:
    """Facts of rows as the database has them: JSON in a column."""
    messages, parts = [], []
    for number, (message, own) in enumerate(turns):
        key = f"msg_{number}"
        messages.append(
            {"id": key, "data": json.dumps({"time": {"created": 1795171297372 + number}, **message})}
        )
        parts += [
            {"id": f"prt_{number}_{i}", "message_id": key, "data": json.dumps(part)}
            for i, part in enumerate(own)
        ]
    return read_opencode(
        TranscriptSource(
            place="db", session={**_SESSION, **session}, messages=tuple(messages), parts=tuple(parts)
        )
    )


def _said(facts: Facts) -> list[tuple[str, int, str]]:
    return [(one.role, one.turn, one.text) for one in facts.conversation]


_USER: dict[str, object] = {"role": "user"}
_DONE: dict[str, object] = {"role": "assistant", "finish": "stop", "modelID": "big"}
_MORE: dict[str, object] = {"role": "assistant", "finish": "tool-calls"}
_ERROR = {"name": "APIError", "data": {"message": "You exceeded your current quota", "statusCode": 429}}


def test_a_session_ended_by_its_limit_leaves_the_prompt() -> None:
    """Commands, changes, counts, and the words of the error."""
    diff = {"filediff": {"additions": 1, "deletions": 2}}
    facts = _read(
        (_USER, [_text("fix add"), _text("injected", synthetic=True), {"type": "file"}]),
        (
            {**_MORE, "tokens": {"input": 10, "output": 2, "reasoning": 1, "cache": {"read": 4, "write": 3}}},
            [
                _tool("read", input={"filePath": "/p/a"}),
                _tool("edit", input={"filePath": "/p/a", "oldString": "x", "newString": "y"}, metadata=diff),
                _tool("bash", input={"command": "pytest"}, output="boom", metadata={"exit": 1}),
            ],
        ),
        ({"role": "assistant", "error": _ERROR}, []),
    )
    assert _said(facts) == [("user", 1, "fix add")]
    assert [(one.command, one.output, one.exit_code) for one in facts.commands] == [("pytest", "boom", 1)]
    assert [(one.path, one.action, one.added, one.removed) for one in facts.files] == [
        ("/p/a", "read", None, None),
        ("/p/a", "modified", 1, 2),
    ]
    assert facts.limit_text == "You exceeded your current quota"
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "fix add"
    assert facts.tokens == Tokens(input=10, cached=4, cache_write=3, output=3, reasoning=1)
    assert (facts.native_id, facts.cwd) == ("ses_1", "/p")


def test_an_answered_prompt_is_processed() -> None:
    """Text that ended its turn is an answer, text before a tool call is none."""
    assert _read((_USER, [_text("go")]), (_DONE, [_text("Done.")])).unprocessed_prompt is None
    assert _read((_USER, [_text("go")]), (_MORE, [_text("Let me see.")])).unprocessed_prompt is not None


def test_a_turn_killed_while_it_waited_leaves_its_prompt() -> None:
    """The database says nothing about it: no parts, no error, a time of completion."""
    facts = _read(
        (_USER, [_text("again")]), ({"role": "assistant", "time": {"completed": 1795171297999}}, [])
    )
    assert facts.unprocessed_prompt is not None
    assert facts.limit_text == ""


def test_an_aborted_turn_gives_way_to_the_next_prompt() -> None:
    """The user pressed escape."""
    aborted = {"role": "assistant", "error": {"name": "MessageAbortedError", "data": {"message": "Aborted"}}}
    facts = _read((_USER, [_text("long")]), (aborted, [_text("I beg")]), (_USER, [_text("short")]))
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "short"
    assert facts.limit_text == ""


def test_history_before_a_compaction_survives() -> None:
    """The compaction's own messages are neither the user's words nor an answer."""
    facts = _read(
        (_USER, [_text("first")]),
        (_DONE, [_text("One.")]),
        (_USER, [{"type": "compaction", "auto": False}]),
        ({**_DONE, "mode": "compaction"}, [_text("Summary.")]),
        (_USER, [_text("second")]),
    )
    assert [text for _, _, text in _said(facts)] == ["first", "One.", "second"]
    assert (facts.summary, facts.summary_turn) == ("Summary.", 1)


def test_what_the_user_reverted_is_left_out() -> None:
    """The session row names the first message taken back."""
    facts = _read(
        (_USER, [_text("keep")]),
        (_DONE, [_text("ok")]),
        (_USER, [_text("undo me")]),
        revert=json.dumps({"messageID": "msg_2"}),
    )
    assert [text for _, _, text in _said(facts)] == ["keep", "ok"]


def test_the_todo_table_is_the_plan() -> None:
    """It is newer than any tool call."""
    todos = ({"content": "Fix", "status": "completed"}, {"content": "Run", "status": "in_progress"})
    facts = read_opencode(TranscriptSource(session=_SESSION, todos=todos))
    assert facts.plan == (TodoItem("Fix", "completed", 0), TodoItem("Run", "in_progress", 0))
    call = _tool("todowrite", input={"todos": [{"content": "Only", "status": "pending"}]})
    assert _read((_USER, [_text("go")]), (_MORE, [call])).plan == (TodoItem("Only", "pending", 1),)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            _tool("write", input={"filePath": "/n", "content": "1\n2\n"}, metadata={"exists": False}),
            ("/n", "created", 2, 0, None),
        ),
        (
            _tool("edit", input={"filePath": "/e", "oldString": "", "newString": "n"}),
            ("/e", "created", 1, 0, None),
        ),
        (
            _tool("write", input={"filePath": "/o"}, metadata={"diff": "@@ -1 +1 @@\n-a\n+b"}),
            ("/o", "modified", 1, 1, None),
        ),
        (
            _tool(
                "apply_patch",
                metadata={"files": [{"filePath": "/a", "movePath": "/b", "type": "move", "additions": 1}]},
            ),
            ("/b", "renamed", 1, 0, "/a"),
        ),
    ],
)
def test_every_kind_of_change_is_counted(part: dict[str, object], expected: tuple[object, ...]) -> None:
    """Each tool tells its change in another way."""
    facts = _read((_USER, [_text("go")]), (_MORE, [part]))
    assert [(one.path, one.action, one.added, one.removed, one.previous_path) for one in facts.files] == [
        expected
    ]


def test_tools_that_failed_or_still_run_are_told_apart() -> None:
    """A refusal is an error, a killed command has no status, a subagent at work is background."""
    facts = _read(
        (_USER, [_text("go")]),
        (
            _MORE,
            [
                _tool(
                    "bash",
                    "error",
                    input={"command": "rm x"},
                    error="The user rejected permission to use this",
                ),
                _tool("bash", "error", input={"command": "sleep 9"}, error="Tool execution aborted"),
                _tool("edit", "error", error="oldString not found"),
                _tool("task", "running", input={"description": "look around"}),
                _tool("read", "pending", input={"filePath": "/p/z"}),
            ],
        ),
    )
    assert [(one.tool, one.text.split("\n")[-1]) for one in facts.errors] == [
        ("bash", "The user rejected permission to use this"),
        ("edit", "oldString not found"),
    ]
    assert [(one.command, one.exit_code) for one in facts.commands] == [("sleep 9", None)]
    assert facts.background == ("subagent: look around",)
    assert facts.files == ()


def test_an_export_says_the_same_as_the_database() -> None:
    """`opencode export` nests what the tables keep apart."""
    document = {
        "info": {"id": "ses_1", "directory": "/p", "title": "T", "time": {"created": 1795171297372}},
        "messages": [
            {"info": {"id": "m1", "role": "user"}, "parts": [_text("go")]},
            {"info": {"id": "m2", "role": "assistant", "finish": "stop"}, "parts": [_text("Done.")]},
        ],
    }
    facts = read_opencode(unpack_export(document))
    assert _said(facts) == [("user", 1, "go"), ("assistant", 1, "Done.")]
    peek = READERS["opencode-db"].peek([json.dumps(document).encode()])
    assert (peek.native_id, peek.cwd, peek.title, peek.is_main) == ("ses_1", "/p", "T", True)
    assert unpack_export([1]).session is None


def test_hostile_rows_harm_nothing_else() -> None:
    """Broken JSON in one row is skipped and counted."""
    messages = ({"id": "a", "data": "{torn"}, {"id": 7, "data": 7}, {"id": "b", "data": '{"role":"user"}'})
    parts = ({"id": "p", "message_id": "b", "data": '{"type":"text","text":"task"}'}, {"data": None})
    facts = read_opencode(TranscriptSource(session={"id": 7, "revert": "{"}, messages=messages, parts=parts))
    assert _said(facts) == [("user", 1, "task")]
    assert facts.skipped_lines == 2


def test_tools_that_leave_no_mark_are_passed_over() -> None:
    """Searches, and a shell call without a command."""
    facts = _read((_USER, [_text("go")]), (_MORE, [_tool("grep", input={}), _tool("bash", input={})]))
    assert facts.files == ()
    assert facts.commands == ()
