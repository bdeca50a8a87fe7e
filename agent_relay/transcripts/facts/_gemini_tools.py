"""Read commands, files and the plan from Gemini CLI's tool calls."""

import re

from agent_relay.transcripts._gemini_format import count_change
from agent_relay.transcripts.facts._fact_collector import Collector
from agent_relay.transcripts.lenient_json import get_list, get_map, get_text

_UNTRUSTED = re.compile(r"</?untrusted_context>\n?")
# The lines the CLI puts after a command's output; the status only where it is not 0.
_TRAILER = re.compile(r"\n?(?:Error|Exit Code|Signal|Background PIDs|Process Group PGID): [^\n]*+\s*+\Z")
# It stands in the last characters; looking through all of the output takes longer than reading the file.
_TRAILER_LENGTH = 4000
_MOST_TRAILERS = 16
_STATUS = re.compile(r"Exit Code: (-?\d+)")


def hear_tool(facts: Collector, call: object, place: str) -> None:
    """Add the facts of one entry of `toolCalls` with its result."""
    name, status = get_text(call, "name"), get_text(call, "status")
    output, error = _read_result(call)
    arguments = get_map(call, "args")
    if name == "run_shell_command":
        _hear_shell(facts, call, output or error, place)
    elif status in ("error", "cancelled"):
        facts.fail(name, error or output or status, place)
    elif status not in ("success", ""):
        return
    else:
        _hear_success(facts, name, call, output=output, place=place)
    if name == "write_todos" and status == "success":
        todos = get_list(arguments, "todos")
        facts.replace_plan([(get_text(one, "description"), get_text(one, "status")) for one in todos])


def _hear_success(facts: Collector, name: str, call: object, *, output: str, place: str) -> None:
    arguments = get_map(call, "args")
    path = get_text(arguments, "file_path") or get_text(arguments, "absolute_path")
    match name:
        case "read_file":
            facts.touch(path, "read", place)
        case "replace" | "edit":
            is_new = get_text(arguments, "old_string") == ""
            facts.touch(path, "created" if is_new else "modified", place, counts=count_change(call))
        case "write_file":
            is_new = "new file" in output[:200]
            facts.touch(path, "created" if is_new else "modified", place, counts=count_change(call))
        case _:
            pass


def _read_result(call: object) -> tuple[str, str]:
    """Return output and error text of a call's function responses."""
    outputs: list[str] = []
    errors: list[str] = []
    for part in get_list(call, "result"):
        response = get_map(part, "functionResponse", "response")
        outputs.append(get_text(response, "output"))
        errors.append(get_text(response, "error"))
    return "\n".join(filter(None, outputs)), "\n".join(filter(None, errors))


def _hear_shell(facts: Collector, call: object, output: str, place: str) -> None:
    command = get_text(get_map(call, "args"), "command")
    status = get_text(call, "status")
    if status == "cancelled" and not output:
        facts.fail("run_shell_command", f"{command}\ncancelled", place)
        return
    text = _UNTRUSTED.sub("", output)
    trailer = ""
    for _ in range(_MOST_TRAILERS):
        found = _TRAILER.search(text, max(0, len(text) - _TRAILER_LENGTH))
        if found is None:
            break
        trailer = f"{found[0]}{trailer}"
        text = text[: found.start()]
    is_background = get_map(call, "args").get("is_background") is True
    if is_background:
        facts.background.append(f"shell: {command}")
    named = _STATUS.search(trailer)
    exit_code = int(named[1]) if named else None
    if named is None and status == "success" and "Signal: " not in trailer and not is_background:
        exit_code = 0
    facts.run(command, text.removeprefix("Output: "), exit_code, place)
