"""What Claude Code's tool calls and their results say about commands, files, plans and background work."""

import re
from dataclasses import dataclass, field

from agent_relay.logic.transcripts.claude_rows import Result
from agent_relay.logic.transcripts.collect import Collector
from agent_relay.logic.transcripts.diffs import count_hunks, count_lines, count_replacement
from agent_relay.logic.transcripts.lines import get_list, get_text

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d+)\n?")
_REFUSED = ("The user doesn't want to", "<tool_use_error>", "Permission to use", "[Request interrupted")
_STEP = re.compile(r"^\s{0,3}(?:[-*+]|\d+[.)])\s+(?:\[(?P<mark>[ xX])\]\s+)?(?P<text>\S.*)$")
_TASK_ID = re.compile(r"<task-id>([^<]+)</task-id>")
_TASK_NUMBER = re.compile(r"Task #(\w+)")
_AGENT_TOOLS = ("Task", "Agent")


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call waiting for its result."""

    name: str
    input: object
    place: str


@dataclass(slots=True)
class Tools:
    """Pairs calls with results and keeps what outlives them: tasks, and work in the background."""

    facts: Collector
    calls: dict[str, Call] = field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)

    def call(self, part: dict[str, object], place: str) -> None:
        """Take note of a `tool_use` part."""
        call = Call(get_text(part, "name"), part.get("input"), place)
        self.calls[get_text(part, "id") or place] = call
        if call.name in ("KillShell", "KillBash", "TaskStop"):
            for key in ("shell_id", "task_id", "bash_id"):
                self.running.pop(get_text(call.input, key), None)

    def answer(self, part: dict[str, object], result: Result, place: str) -> None:
        """Pair a `tool_result` part with its call and keep what it says."""
        call = self.calls.pop(get_text(part, "tool_use_id"), None)
        if call is None:
            return
        text = get_text(part, "content")
        failed = part.get("is_error") is True
        if call.name == "Bash":
            self._answer_shell(call, result, text, failed=failed, place=place)
        elif failed:
            self.facts.fail(call.name, text, place)
        elif call.name in _AGENT_TOOLS:
            if result.status == "async_launched" and result.agent_id:
                self.running[result.agent_id] = describe_agent(call)
        else:
            self._answer_tool(call, result, text, place)

    def notify(self, text: str) -> None:
        """Take note of a `<task-notification>`: the task it names runs no more."""
        for number in _TASK_ID.findall(text):
            self.running.pop(number, None)

    def finish(self) -> None:
        """Settle what has no result: commands cut off, subagents still at work, the plan of tasks."""
        for call in self.calls.values():
            if call.name == "Bash" and get_text(call.input, "command"):
                self.facts.run(get_text(call.input, "command"), "", None, call.place)
            elif call.name in _AGENT_TOOLS:
                self.running[call.place] = describe_agent(call)
        self.facts.background.extend(self.running.values())
        if self.tasks:
            self.facts.replace_plan(list(self.tasks.values()))

    def _answer_shell(self, call: Call, result: Result, text: str, *, failed: bool, place: str) -> None:
        command = get_text(call.input, "command")
        if failed and text.startswith(_REFUSED):
            self.facts.fail(call.name, f"{command}\n{text}", place)
            return
        exit_code: int | None = 0
        if failed:
            found = _EXIT.match(text)
            exit_code = int(found[1]) if found else None
            text = text[found.end() :] if found else text
        elif result.background_task_id:
            self.running[result.background_task_id] = f"shell: {command}"
            exit_code = None
        elif result.interrupted or result.return_code_interpretation:
            # The interpretation stands where grep and its like left with a status other than 0.
            exit_code = None
        self.facts.run(command, text, exit_code, place)

    def _answer_tool(self, call: Call, result: Result, text: str, place: str) -> None:
        path = get_text(call.input, "file_path") or get_text(call.input, "notebook_path")
        match call.name:
            case "Read" | "NotebookRead":
                self.facts.touch(path, "read", place)
            case "Write" if result.type == "create":
                counts = (count_lines(get_text(call.input, "content")), 0)
                self.facts.touch(path, "created", place, counts=counts)
            case "Edit" | "MultiEdit" | "Write" | "NotebookEdit":
                self.facts.touch(path, "modified", place, counts=_count(call, result))
            case "TodoWrite":
                todos = get_list(call.input, "todos")
                self.facts.replace_plan(
                    [(get_text(one, "content"), get_text(one, "status")) for one in todos]
                )
            case "ExitPlanMode":
                self.facts.replace_plan(parse_steps(get_text(call.input, "plan")))
            case "TaskCreate":
                self._create_task(call, result, text)
            case "TaskUpdate":
                self._update_task(call)
            case _:
                pass

    def _create_task(self, call: Call, result: Result, text: str) -> None:
        found = _TASK_NUMBER.search(text)
        number = get_text(result.task, "id") or (found[1] if found else call.place)
        self.tasks[number] = (get_text(call.input, "subject"), "pending")

    def _update_task(self, call: Call) -> None:
        number = get_text(call.input, "taskId")
        if number not in self.tasks:
            return
        subject, status = self.tasks[number]
        self.tasks[number] = (
            get_text(call.input, "subject") or subject,
            get_text(call.input, "status") or status,
        )


def describe_agent(call: Call) -> str:
    """What a subagent was asked to do, in the caller's words."""
    words = get_text(call.input, "description") or get_text(call.input, "prompt")[:200]
    kind = get_text(call.input, "subagent_type")
    return f"subagent: {words}" + (f" ({kind})" if kind else "")


def parse_steps(plan: str) -> list[tuple[str, str]]:
    """The top-level list items of a plan in Markdown, or its first line where it holds no list."""
    found = [match for match in map(_STEP.match, plan.splitlines()) if match]
    steps = [(one["text"].strip(), "completed" if one["mark"] in ("x", "X") else "pending") for one in found]
    if steps:
        return steps
    first = next((line.strip("# ").strip() for line in plan.splitlines() if line.strip("# ")), "")
    return [(first, "pending")] if first else []


def _count(call: Call, result: Result) -> tuple[int, int] | None:
    """Added and removed lines: from the recorded patch, else from the strings that were exchanged."""
    if result.structured_patch:
        lines = [line for hunk in result.structured_patch for line in get_list(hunk, "lines")]
        return count_hunks(lines)
    edits = get_list(call.input, "edits") or [call.input]
    if not any(get_text(edit, "old_string") or get_text(edit, "new_string") for edit in edits):
        return None
    pairs = [count_replacement(get_text(edit, "old_string"), get_text(edit, "new_string")) for edit in edits]
    return sum(added for added, _ in pairs), sum(removed for _, removed in pairs)
