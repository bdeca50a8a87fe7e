"""What opencode's tool parts say about commands, files, the plan and subagents."""

from collections.abc import Mapping

from agent_relay.logic.transcripts.collect import Action, Collector
from agent_relay.logic.transcripts.diffs import count_lines, count_replacement, count_unified
from agent_relay.logic.transcripts.lines import get_count, get_list, get_map, get_text, get_whole

_REFUSED = ("rejected permission", "prevents you from using", "Tool not found", "Invalid")
_PATCH_ACTIONS: dict[str, Action] = {"add": "created", "delete": "deleted", "move": "renamed"}


def hear_tool(facts: Collector, part: Mapping[str, object], place: str) -> None:
    """Take one tool part in whatever state it was left."""
    tool, state = get_text(part, "tool"), get_map(part, "state")
    status, error = get_text(state, "status"), get_text(state, "error")
    if tool == "bash":
        _hear_shell(facts, state, error, place)
    elif status == "error":
        facts.fail(tool, error, place)
    elif tool == "task" and status in ("running", "pending"):
        facts.background.append(f"subagent: {get_text(get_map(state, 'input'), 'description')}")
    elif status == "completed":
        _hear_completed(facts, tool, state, place)


def _hear_shell(facts: Collector, state: Mapping[str, object], error: str, place: str) -> None:
    command = get_text(get_map(state, "input"), "command")
    metadata = get_map(state, "metadata")
    output = get_text(state, "output") or get_text(metadata, "output")
    if any(words in error for words in _REFUSED):
        facts.fail("bash", f"{command}\n{error}", place)
    elif command:
        facts.run(command, output or error, get_whole(metadata, "exit"), place)


def _hear_completed(facts: Collector, tool: str, state: Mapping[str, object], place: str) -> None:
    given, metadata = get_map(state, "input"), get_map(state, "metadata")
    path = get_text(given, "filePath")
    match tool:
        case "read":
            facts.touch(path, "read", place)
        case "edit" | "multiedit":
            is_new = tool == "edit" and get_text(given, "oldString") == ""
            facts.touch(path, "created" if is_new else "modified", place, counts=_count(given, metadata))
        case "write":
            is_new = metadata.get("exists") is False
            facts.touch(path, "created" if is_new else "modified", place, counts=_count(given, metadata))
        case "apply_patch" | "patch":
            _hear_patch(facts, metadata, place)
        case "todowrite":
            todos = get_list(given, "todos")
            facts.replace_plan([(get_text(todo, "content"), get_text(todo, "status")) for todo in todos])
        case _:
            pass


def _count(given: Mapping[str, object], metadata: Mapping[str, object]) -> tuple[int, int] | None:
    found = get_map(metadata, "filediff")
    if "additions" in found:
        return get_count(found, "additions"), get_count(found, "deletions")
    if get_text(metadata, "diff"):
        return count_unified(get_text(metadata, "diff"))
    if get_text(given, "newString") or get_text(given, "oldString"):
        return count_replacement(get_text(given, "oldString"), get_text(given, "newString"))
    return (count_lines(get_text(given, "content")), 0) if "content" in given else None


def _hear_patch(facts: Collector, metadata: Mapping[str, object], place: str) -> None:
    for file in get_list(metadata, "files"):
        path = get_text(file, "filePath") or get_text(file, "relativePath")
        moved = get_text(file, "movePath")
        action = _PATCH_ACTIONS.get(get_text(file, "type"), "modified")
        counts = (get_count(file, "additions"), get_count(file, "deletions"))
        facts.touch(moved or path, action, place, counts=counts, previous_path=path if moved else None)
