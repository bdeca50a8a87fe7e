"""Read one turn's items of a Codex rollout, or the wire records older versions left instead."""

import re
from collections.abc import Mapping

from agent_relay.transcripts import lenient_json as lenient
from agent_relay.transcripts._codex_usage import count_change, is_refused
from agent_relay.transcripts.fact_reading import (
    Collector,
    EditedLines,
    list_first_lines,
    list_hunk_lines,
    list_unified_lines,
)

WRAPPERS = lenient.compile_wrappers(
    "environment_context",
    "user_instructions",
    "INSTRUCTIONS",
    "turn_aborted",
    "user_shell_command",
    "skill",
    "subagent_notification",
    "hook_context",
)
_AGENTS_MD = re.compile(r"\A# AGENTS\.md instructions for [^\n]*\n")
_SHELLS = ("bash", "sh", "zsh", "dash", "fish")
_EXIT = re.compile(r"(?:Process exited with code|Exit code:) (-?\d+)")
_OUTPUT = re.compile(r"\A(?:[^\n]*\n){0,8}?Output:\n")
_JS_COMMAND = re.compile(r"exec_command\(\s*\{\s*\"?cmd\"?\s*:\s*(\"(?:[^\"\\]|\\.)*\")")
_JS_PATCH = re.compile(r"apply_patch\(\s*(\"(?:[^\"\\]|\\.)*\")")
_PATCH_FILE = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$")
_PATCH_MOVE = re.compile(r"^\*\*\* Move to: (.+)$")


def clean_words(text: str) -> str:
    """Return the user's words in a user message, empty if it is injected context."""
    return lenient.strip_wrappers(_AGENTS_MD.sub("", text), WRAPPERS)


def join_command(command: object) -> str:
    """Join an argument list into a command line, without the shell it was wrapped in."""
    if isinstance(command, str):
        return command
    words = [word for word in command if isinstance(word, str)] if isinstance(command, list) else []
    shell = words[0].rsplit("/", 1)[-1] if words else ""
    if shell in _SHELLS and len(words) > 2 and words[1].startswith("-"):  # noqa: PLR2004 - shell, -lc, text
        return words[2]
    return " ".join(words)


def hear_item(facts: Collector, item: Mapping[str, object], place: str) -> None:
    """Add the facts of one completed item."""
    match item.get("type"):
        case "UserMessage":
            facts.hear_user(
                clean_words(lenient.join_text(item.get("content"), kinds=("text", "Text"))), place
            )
        case "AgentMessage":
            text = lenient.join_text(item.get("content"), kinds=("text", "Text")).strip()
            if text:
                facts.hear_agent(text, place)
        case "CommandExecution":
            exit_code = lenient.get_whole(item, "exit_code")
            command = join_command(item.get("command"))
            facts.run(command, lenient.get_text(item, "aggregated_output"), exit_code, place)
            _touch_read(facts, item, place)
        case "FileChange":
            if is_refused(item):
                facts.fail(
                    "apply_patch", lenient.get_text(item, "stderr") or lenient.get_text(item, "stdout"), place
                )
            else:
                hear_changes(facts, lenient.get_map(item, "changes"), place)
        case "McpToolCall" if item.get("status") == "failed":
            error = lenient.get_text(item.get("error"), "message") or lenient.get_text(item, "error")
            facts.fail(lenient.get_text(item, "tool") or "mcp", error, place)
        case _:
            pass


def hear_changes(facts: Collector, changes: Mapping[str, object], place: str) -> None:
    """Add the files of one patch, keyed by path."""
    for path, change in changes.items():
        moved = lenient.get_text(change, "move_path")
        counts, lines = count_change(change), _list_lines(change)
        match lenient.get_text(change, "type"):
            case "add":
                facts.touch(path, "created", place, counts=counts, lines=lines)
            case "delete":
                facts.touch(path, "deleted", place, counts=counts, lines=lines)
            case "update" if moved:
                facts.touch(moved, "renamed", place, counts=counts, lines=lines, previous_path=path)
            case "update":
                facts.touch(path, "modified", place, counts=counts, lines=lines)
            case _:
                pass


def _list_lines(change: object) -> EditedLines:
    """List the lines that one file's change removed and added."""
    content = lenient.get_text(change, "content")
    match lenient.get_text(change, "type"):
        case "add":
            return list_first_lines(content)
        case "delete":
            return EditedLines(removed=list_first_lines(content).added)
        case _:
            return list_unified_lines(lenient.get_text(change, "unified_diff"))


def _touch_read(facts: Collector, item: Mapping[str, object], place: str) -> None:
    for part in lenient.get_list(item, "parsed_cmd"):
        if lenient.get_text(part, "type") == "read" and item.get("exit_code") == 0:
            facts.touch(lenient.get_text(part, "path") or lenient.get_text(part, "name"), "read", place)


def hear_wire_call(facts: Collector, call: Mapping[str, object], output: str | None, place: str) -> None:
    """Add a wire call and its output (`None` if there is none), for turns without items."""
    name = lenient.get_text(call, "name")
    arguments = lenient.get_text(call, "arguments") or lenient.get_text(call, "input")
    parsed = lenient.decode_text(arguments)
    match name:
        case "exec_command" | "shell" | "shell_command" | "local_shell" | "container.exec":
            command = parsed.get("cmd") or parsed.get("command") if isinstance(parsed, dict) else None
            words = join_command(command)
            patch = _find_heredoc_patch(words)
            if patch:
                _hear_patch(facts, patch, place)
            elif words:
                facts.run(words, strip_preamble(output or ""), find_exit_code(output), place)
        case "apply_patch":
            patch = arguments if "*** Begin Patch" in arguments[:200] else lenient.get_text(parsed, "input")
            _hear_patch_result(facts, patch, output, place)
        case "exec":
            for quoted in _JS_COMMAND.findall(arguments):
                command = lenient.decode_text(quoted)
                if isinstance(command, str):
                    facts.run(command, strip_preamble(output or ""), find_exit_code(output), place)
            for quoted in _JS_PATCH.findall(arguments):
                patch_text = lenient.decode_text(quoted)
                if isinstance(patch_text, str):
                    _hear_patch_result(facts, patch_text, output, place)
        case _:
            pass


def strip_preamble(output: str) -> str:
    """Return tool output without the lines Codex puts before it, or the JSON around it in older versions."""
    parsed = lenient.decode_text(output) if output.startswith("{") else None
    if isinstance(parsed, dict) and "output" in parsed:
        return lenient.get_text(parsed, "output")
    found = _OUTPUT.match(output)
    return output[found.end() :] if found else output


def find_exit_code(output: str | None) -> int | None:
    """Return the exit status in the preamble of a tool's output, or `None` if there is none."""
    if output is None:
        return None
    parsed = lenient.decode_text(output) if output.startswith("{") else None
    if isinstance(parsed, dict):
        return lenient.get_whole(parsed.get("metadata"), "exit_code")
    found = _EXIT.search(output[:400])
    return int(found[1]) if found else None


def _find_heredoc_patch(command: str) -> str:
    start, end = command.find("*** Begin Patch"), command.find("*** End Patch")
    return command[start:end] if command.lstrip().startswith("apply_patch") and 0 <= start < end else ""


def _hear_patch_result(facts: Collector, patch: str, output: str | None, place: str) -> None:
    if output is not None and ("verification failed" in output or find_exit_code(output) not in (0, None)):
        facts.fail("apply_patch", output, place)
    elif output is not None:
        _hear_patch(facts, patch, place)


def _hear_patch(facts: Collector, patch: str, place: str) -> None:
    """Add the files of a patch in Codex's own patch language."""
    kind = path = moved = ""
    body: list[str] = []
    for line in [*patch.split("\n"), "*** End Patch"]:
        found = _PATCH_FILE.match(line)
        target = _PATCH_MOVE.match(line)
        if target:
            moved = target[1].strip()
        elif found or line.startswith("*** End Patch"):
            _touch_patched(facts, kind, path, moved=moved, body=body, place=place)
            kind, path = (found[1], found[2].strip()) if found else ("", "")
            moved, body = "", []
        else:
            body.append(line)


def _touch_patched(
    facts: Collector, kind: str, path: str, *, moved: str, body: list[str], place: str
) -> None:
    counts, lines = lenient.count_hunks(body), list_hunk_lines(body)
    match kind:
        case "Add":
            facts.touch(path, "created", place, counts=counts, lines=lines)
        case "Delete":
            facts.touch(path, "deleted", place)
        case "Update" if moved:
            facts.touch(moved, "renamed", place, counts=counts, lines=lines, previous_path=path)
        case "Update":
            facts.touch(path, "modified", place, counts=counts, lines=lines)
        case _:
            pass
