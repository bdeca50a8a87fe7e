"""The lines that edits took out and put in, in every form that the agents record."""

import json

from agent_relay.domain.facts import FileChange
from agent_relay.transcripts._opencode import unpack_export
from agent_relay.transcripts.fact_readers import READERS
from tests.transcripts.rows import (
    Claude,
    codex_item,
    codex_message,
    codex_wire,
    join_lines,
    read_lines,
    read_rollout,
    read_sample,
)

_Lines = tuple[tuple[str, ...], tuple[str, ...]]
_FIX = (("return a - b",), ("return a + b",))
_TEST = ((), ("from calc import add", "def test_add():", "assert add(2, 3) == 5"))


def _list_lines(files: tuple[FileChange, ...]) -> list[_Lines]:
    return [(one.removed_lines, one.added_lines) for one in files if one.action != "read"]


def _edit_claude(name: str, *, result: object = None, **arguments: object) -> list[_Lines]:
    claude = Claude()
    claude.user("edit")
    claude.call(name, "c1", file_path="/p/a", **arguments)
    claude.answer("c1", "ok", **({"toolUseResult": result} if result else {}))
    return _list_lines(claude.read().files)


def _change_codex(change: dict[str, object]) -> list[_Lines]:
    item = codex_item("FileChange", changes={"/p/a": change}, status="completed")
    return _list_lines(read_rollout(item).files)


def _edit_gemini(name: str, arguments: dict[str, object], **call: object) -> list[_Lines]:
    response = {"functionResponse": {"response": {"output": "ok"}}}
    made = {"name": name, "status": "success", "args": {"file_path": "/p/a", **arguments}, **call}
    rows = [
        {"sessionId": "s", "startTime": "2026-11-20T10:00:00Z", "kind": "main"},
        {"id": "1", "type": "user", "content": "edit"},
        {"id": "2", "type": "gemini", "content": "", "toolCalls": [{**made, "result": [response]}]},
    ]
    return _list_lines(read_lines("gemini-jsonl", join_lines(*rows)).files)


def _edit_opencode(tool: str, given: dict[str, object], metadata: dict[str, object]) -> list[_Lines]:
    state = {"status": "completed", "input": {"filePath": "/p/a", **given}, "metadata": metadata}
    document = {
        "info": {"id": "ses_1"},
        "messages": [
            {"info": {"id": "m1", "role": "user"}, "parts": [{"type": "text", "text": "go"}]},
            {
                "info": {"id": "m2", "role": "assistant"},
                "parts": [{"type": "tool", "tool": tool, "state": state}],
            },
        ],
    }
    return _list_lines(READERS["opencode-db"].read(unpack_export(document)).files)


def test_recorded_edits_tell_their_lines() -> None:
    """What was undone later is found from the lines themselves, not from anybody's words."""
    rows: dict[tuple[str, str], list[_Lines]] = {
        ("claude-jsonl", "claude-limit.jsonl"): [_FIX, _TEST],
        ("codex-rollout", "codex-limit.jsonl"): [_FIX, _TEST],
        ("codex-rollout", "codex-codemode.jsonl"): [_FIX],
        ("gemini-jsonl", "gemini-limit.jsonl"): [_FIX],
    }
    assert {
        (reader, sample): _list_lines(read_lines(reader, read_sample(sample)).files)
        for reader, sample in rows
    } == rows


def test_claude_tells_lines_by_patch_strings_or_content() -> None:
    """The recorded patch is exact; versions without one leave what the call was given."""
    patch = [{"lines": [" keep", "-old", "+new", "\\ No newline at end of file"]}, {"lines": ["+ more "]}]
    strings = {"old_string": "same\nold\nend", "new_string": "same\nnew\nend"}
    assert _edit_claude("Edit", result={"structuredPatch": patch}, **strings) == [(("old",), ("new", "more"))]
    assert _edit_claude("Edit", **strings) == [(("old",), ("new",))]
    assert _edit_claude("MultiEdit", edits=[strings, {"old_string": "x", "new_string": ""}]) == [
        (("old", "x"), ("new",))
    ]
    assert _edit_claude("Write", content="a\n\n  b\n") == [((), ("a", "b"))]
    assert _edit_claude("Write", content="c", result={"type": "create"}) == [((), ("c",))]
    assert _edit_claude("NotebookEdit", new_source="cell") == [((), ("cell",))]


def test_codex_tells_lines_of_items_and_of_patches() -> None:
    """A rollout without items holds the patch itself, as a tool's input or in a heredoc."""
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n"
    assert _change_codex({"type": "update", "unified_diff": diff}) == [(("old",), ("new",))]
    assert _change_codex({"type": "update", "unified_diff": diff, "move_path": "/p/b"}) == [
        (("old",), ("new",))
    ]
    assert _change_codex({"type": "add", "content": "a\nb\n"}) == [((), ("a", "b"))]
    assert _change_codex({"type": "delete", "content": "a\n"}) == [(("a",), ())]
    patch = "*** Begin Patch\n*** Update File: a\n@@ def f():\n-old\n+new\n*** Add File: b\n+c\n*** End Patch"
    heredoc = json.dumps({"command": ["bash", "-lc", f"apply_patch <<'EOF'\n{patch}\nEOF"]})
    facts = read_rollout(
        codex_message("user", "go"),
        codex_wire("custom_tool_call", name="apply_patch", call_id="1", input=patch),
        codex_wire("custom_tool_call_output", call_id="1", output="Exit code: 0\nOutput:\nSuccess."),
        codex_wire("function_call", name="shell", call_id="2", arguments=heredoc),
    )
    assert _list_lines(facts.files) == [(("old",), ("new",)), ((), ("c",))] * 2


def test_gemini_tells_lines_by_diff_strings_or_content() -> None:
    """The diff of what was shown counts; a new file has an empty one."""
    shown = {"fileDiff": "Index: a\n--- a\tCurrent\n+++ a\tProposed\n@@ -1 +1 @@\n-old\n+new\n"}
    assert _edit_gemini("replace", {"old_string": "x", "new_string": "y"}, resultDisplay=shown) == [
        (("old",), ("new",))
    ]
    assert _edit_gemini("replace", {"old_string": "k\nx", "new_string": "k\ny"}) == [(("x",), ("y",))]
    assert _edit_gemini("write_file", {"content": "a\nb"}, resultDisplay={"fileDiff": ""}) == [
        ((), ("a", "b"))
    ]


def test_opencode_tells_lines_by_diff_patch_strings_or_content() -> None:
    """Versions keep the diff under different names; a patch of several files has one for each."""
    diff = "--- a\n+++ a\n@@ -1 +1 @@\n-old\n+new\n"
    strings = {"oldString": "x", "newString": "y"}
    assert _edit_opencode("edit", strings, {"diff": diff}) == [(("old",), ("new",))]
    assert _edit_opencode("edit", strings, {"filediff": {"patch": diff}}) == [(("old",), ("new",))]
    assert _edit_opencode("edit", strings, {}) == [(("x",), ("y",))]
    assert _edit_opencode("multiedit", {"edits": [strings, strings]}, {}) == [(("x", "x"), ("y", "y"))]
    assert _edit_opencode("write", {"content": "a\nb"}, {"exists": False}) == [((), ("a", "b"))]
    files = [{"filePath": "/p/a", "type": "update", "diff": diff}, {"filePath": "/p/b", "type": "delete"}]
    assert _edit_opencode("apply_patch", {}, {"files": files}) == [(("old",), ("new",)), ((), ())]


def test_lines_are_few_and_short_and_end_with_whole_words() -> None:
    """Half a key would not be recognised as one, so a line never ends inside a word."""
    words, key = "word " * 40, "k" * 400
    text = "\n".join([words, key, f"token = {key}", "\u7ebf" * 200, *map(str, range(100))])
    ((_, added),) = _edit_claude("Write", content=text)
    assert len(added) == 40
    assert added[:4] == (words[:159], "token =", "\u7ebf" * 160, "0")
    blank = "\n" * 1000 + "deep"
    assert _edit_claude("Write", content=blank) == [((), ())]
