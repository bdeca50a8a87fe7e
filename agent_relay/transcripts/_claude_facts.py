"""Read facts from Claude Code's session files: messages, tool calls and their results."""

import re
from collections.abc import Iterable
from itertools import islice

import msgspec

from agent_relay.domain.facts import Facts, TodoItem
from agent_relay.transcripts import lenient_json as lenient
from agent_relay.transcripts._claude_tree import ClaudeRow, Result, read_rows, select_active
from agent_relay.transcripts._claude_usage import SYNTHETIC_MODEL, count_patch, parse_tokens
from agent_relay.transcripts.fact_reading import (
    Collector,
    EditedLines,
    Peek,
    TranscriptSource,
    join_edits,
    list_first_lines,
    list_hunk_lines,
    list_replaced_lines,
)

_EXIT = re.compile(r"\A(?:Error: )?Exit code (\d+)\n?")
_REFUSED = ("The user doesn't want to", "<tool_use_error>", "Permission to use", "[Request interrupted")
_STEP = re.compile(r"^\s{0,3}(?:[-*+]|\d+[.)])\s+(?:\[(?P<mark>[ xX])\]\s+)?(?P<text>\S.*)$")
_TASK_ID = re.compile(r"<task-id>([^<]+)</task-id>")
_TASK_NUMBER = re.compile(r"Task #(\w+)")
_AGENT_TOOLS = ("Task", "Agent")


class Call(msgspec.Struct, frozen=True):
    """A tool call waiting for its result."""

    name: str
    input: object
    place: str


class Tools(msgspec.Struct):
    """Pairs calls with results, and keeps what outlives them: tasks, and work in the background."""

    facts: Collector
    planned: tuple[TodoItem, ...] = ()
    calls: dict[str, Call] = msgspec.field(default_factory=dict)
    tasks: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    running: dict[str, str] = msgspec.field(default_factory=dict)

    def call(self, part: dict[str, object], place: str) -> None:
        """Note a `tool_use` part."""
        call = Call(lenient.get_text(part, "name"), part.get("input"), place)
        self.calls[lenient.get_text(part, "id") or place] = call
        if call.name in ("KillShell", "KillBash", "TaskStop"):
            for key in ("shell_id", "task_id", "bash_id"):
                self.running.pop(lenient.get_text(call.input, key), None)

    def answer(self, part: dict[str, object], result: Result, place: str) -> None:
        """Pair a `tool_result` part with its call and add its facts."""
        call = self.calls.pop(lenient.get_text(part, "tool_use_id"), None)
        if call is None:
            return
        text = lenient.get_text(part, "content")
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
        """Note a `<task-notification>`: the task it names no longer runs."""
        for number in _TASK_ID.findall(text):
            self.running.pop(number, None)

    def finish(self) -> None:
        """Add what has no result: commands cut off, subagents still at work, the plan of tasks."""
        for call in self.calls.values():
            if call.name == "Bash" and lenient.get_text(call.input, "command"):
                self.facts.run(lenient.get_text(call.input, "command"), "", None, call.place)
            elif call.name in _AGENT_TOOLS:
                self.running[call.place] = describe_agent(call)
        self.facts.background.extend(self.running.values())
        if self.tasks:
            self.facts.replace_plan(list(self.tasks.values()))

    def _answer_shell(self, call: Call, result: Result, text: str, *, failed: bool, place: str) -> None:
        command = lenient.get_text(call.input, "command")
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
        path = lenient.get_text(call.input, "file_path") or lenient.get_text(call.input, "notebook_path")
        match call.name:
            case "Read" | "NotebookRead":
                self.facts.touch(path, "read", place)
            case "Write" if result.type == "create":
                content = lenient.get_text(call.input, "content")
                counts = (lenient.count_lines(content), 0)
                self.facts.touch(path, "created", place, counts=counts, lines=list_first_lines(content))
            case "Edit" | "MultiEdit" | "Write" | "NotebookEdit":
                self.facts.touch(
                    path, "modified", place, counts=_count(call, result), lines=_list_lines(call, result)
                )
            case "TodoWrite":
                todos = lenient.get_list(call.input, "todos")
                self.facts.replace_plan(
                    [(lenient.get_text(one, "content"), lenient.get_text(one, "status")) for one in todos]
                )
            case "ExitPlanMode":
                self.facts.replace_plan(parse_steps(lenient.get_text(call.input, "plan")))
            case "TaskCreate":
                self._recall_tasks()
                self._create_task(call, result, text)
            case "TaskUpdate":
                self._recall_tasks()
                self._update_task(call)
            case _:
                pass

    def _recall_tasks(self) -> None:
        """Begin with what was planned before: tasks are numbered from 1, in their order."""
        if not self.tasks:
            self.tasks = {
                str(number): (step.text, step.status) for number, step in enumerate(self.planned, 1)
            }

    def _create_task(self, call: Call, result: Result, text: str) -> None:
        found = _TASK_NUMBER.search(text)
        number = lenient.get_text(result.task, "id") or (found[1] if found else call.place)
        self.tasks[number] = (lenient.get_text(call.input, "subject"), "pending")

    def _update_task(self, call: Call) -> None:
        number = lenient.get_text(call.input, "taskId")
        if number not in self.tasks:
            return
        subject, status = self.tasks[number]
        self.tasks[number] = (
            lenient.get_text(call.input, "subject") or subject,
            lenient.get_text(call.input, "status") or status,
        )


def describe_agent(call: Call) -> str:
    """Describe what a subagent was asked to do, in the caller's words."""
    words = lenient.get_text(call.input, "description") or lenient.get_text(call.input, "prompt")[:200]
    kind = lenient.get_text(call.input, "subagent_type")
    return f"subagent: {words}" + (f" ({kind})" if kind else "")


def parse_steps(plan: str) -> list[tuple[str, str]]:
    """Parse the top-level list items of a plan in Markdown, or its first line if it has no list."""
    found = [match for match in map(_STEP.match, plan.splitlines()) if match]
    steps = [(one["text"].strip(), "completed" if one["mark"] in ("x", "X") else "pending") for one in found]
    if steps:
        return steps
    first = next((line.strip("# ").strip() for line in plan.splitlines() if line.strip("# ")), "")
    return [(first, "pending")] if first else []


def _count(call: Call, result: Result) -> tuple[int, int] | None:
    """Count added and removed lines, by the recorded patch, else by the strings that were exchanged."""
    if result.structured_patch:
        return count_patch(result.structured_patch)
    edits = lenient.get_list(call.input, "edits") or [call.input]
    if not any(
        lenient.get_text(edit, "old_string") or lenient.get_text(edit, "new_string") for edit in edits
    ):
        return None
    pairs = [
        lenient.count_replacement(lenient.get_text(edit, "old_string"), lenient.get_text(edit, "new_string"))
        for edit in edits
    ]
    return sum(added for added, _ in pairs), sum(removed for _, removed in pairs)


def _list_lines(call: Call, result: Result) -> EditedLines:
    """List the lines the edit removed and added, from the recorded patch, else from the call's arguments."""
    if result.structured_patch:
        return list_hunk_lines(
            line for hunk in result.structured_patch for line in lenient.get_list(hunk, "lines")
        )
    written = lenient.get_text(call.input, "content") or lenient.get_text(call.input, "new_source")
    if written:
        return list_first_lines(written)
    return join_edits(
        list_replaced_lines(lenient.get_text(edit, "old_string"), lenient.get_text(edit, "new_string"))
        for edit in lenient.get_list(call.input, "edits") or [call.input]
    )


_WRAPPERS = lenient.compile_wrappers(
    "system-reminder",
    r"local-command-[a-z-]+",
    r"command-(?:name|message|args|contents)",
    r"bash-(?:input|stdout|stderr)",
    "task-notification",
    "user-memory-input",
    r"ide_[a-z_]+",
    "user-prompt-submit-hook",
    "teammate-message",
)
_INTERRUPTED = re.compile(r"\A\[Request interrupted by user[^\]]*\]\s*\Z")
_COMMAND = re.compile(r"<command-name>\s*(/[^<]*)</command-name>")
_ARGS = re.compile(r"<command-args>((?:(?!<command-args>).)*?)</command-args>", re.DOTALL)
_SUMMARY = re.compile(
    r"^Summary:\s*(.*?)(?:\n\nIf you need specific details from before|\Z)", re.DOTALL | re.MULTILINE
)
# What it queues for itself at a limit and at its reset; the queue's rows do not say who wrote them.
_OWN_PROMPT = re.compile(
    r"\AYour claude\.ai usage (?:limit has reset|is available again before the usage-limit reset)\."
    r" Continue the task |\A/rate-limit-options\s*\Z"
)
_PEEK_ROWS = 60


def read_claude(source: TranscriptSource) -> Facts:
    """Read the facts of one session file: the branch the user sees, compacted history included."""
    counter = lenient.LineCounter()
    rows = select_active(read_rows(source.lines, counter))
    facts = Collector(agent="claude", place=source.place)
    tools = Tools(facts, planned=source.plan)
    queue: list[tuple[str, str]] = []
    model = cwd = native_id = ""
    for index, row in enumerate(rows):
        place = f"{source.place}:{row.number}"
        if row.type == "queue-operation":
            _queue(queue, row, place)
            continue
        facts.see(row.at)
        cwd, native_id = cwd or row.cwd, row.session_id or native_id
        if row.type == "assistant":
            model = row.model if row.model and not row.model.startswith("<") else model
            _hear_assistant(facts, tools, row, place)
        elif row.type == "user":
            following = rows[index + 1] if index + 1 < len(rows) else None
            _hear_user_row(facts, tools, row, following, place)
        elif row.type == "attachment" and row.text:
            facts.hear_user(lenient.strip_wrappers(row.text, _WRAPPERS), place)
    _settle_queue(facts, queue)
    tools.finish()
    return facts.build(
        native_id=native_id or source.native_id,
        cwd=cwd or source.cwd,
        model=model,
        counter=counter,
    )


def peek_claude(lines: Iterable[bytes]) -> Peek:
    """Read session id, working folder and first prompt from the first rows."""
    rows = read_rows(islice(lines, _PEEK_ROWS), lenient.LineCounter())
    known = [row for row in rows if row.session_id]
    words = (lenient.strip_wrappers(row.text, _WRAPPERS) for row in rows if _is_prompt(row))
    return Peek(
        native_id=known[0].session_id if known else "",
        cwd=next((row.cwd for row in known if row.cwd), ""),
        title=next((text for text in words if text), ""),
        started_at=next((row.at for row in rows if row.at), None),
        is_main=bool(known),
    )


def _is_prompt(row: ClaudeRow) -> bool:
    if row.type != "user" or row.is_meta or row.is_summary or row.parts:
        return False
    return not _INTERRUPTED.match(row.text)


def _hear_assistant(facts: Collector, tools: Tools, row: ClaudeRow, place: str) -> None:
    if row.is_api_error:
        facts.limit_text = row.text.strip()
        facts.answered = False
        return
    if row.model == SYNTHETIC_MODEL:
        return
    if row.usage is not None:
        # One answer spans several rows that repeat its usage; the last one is complete.
        facts.tokens[row.message_id or row.uuid] = parse_tokens(row.usage)
    if row.text.strip():
        facts.hear_agent(row.text.strip(), place)
        facts.answered = row.stop_reason != "tool_use"
    for part in row.parts:
        if part.get("type") == "tool_use":
            facts.answered = False
            tools.call(part, place)


def _hear_user_row(
    facts: Collector, tools: Tools, row: ClaudeRow, following: ClaudeRow | None, place: str
) -> None:
    for part in row.parts:
        if part.get("type") == "tool_result":
            facts.answered = False
            tools.answer(part, row.result, place)
    if row.is_summary:
        found = _SUMMARY.search(row.text)
        facts.summarize((found[1] if found else row.text).strip())
        return
    if "<task-notification>" in row.text:
        tools.notify(row.text)
    if row.is_continuation:
        facts.limit_text, facts.answered = "", False
    if row.is_meta:
        return
    if _INTERRUPTED.match(row.text):
        facts.answered = False
        facts.interrupted = True
        return
    if _COMMAND.search(row.text):
        _hear_command(facts, row, following, place)
        return
    facts.hear_user(lenient.strip_wrappers(row.text, _WRAPPERS), place)


def _hear_command(facts: Collector, row: ClaudeRow, following: ClaudeRow | None, place: str) -> None:
    """Add a slash command as a prompt if its expansion follows; the CLI's own ones print instead."""
    name, args = _COMMAND.search(row.text), _ARGS.search(row.text)
    expands = following is not None and following.type == "user" and following.is_meta
    if name and expands and following and "<local-command" not in following.text:
        facts.hear_user(f"{name[1].rstrip()} {args[1].strip() if args else ''}".strip(), place)


def _queue(queue: list[tuple[str, str]], row: ClaudeRow, place: str) -> None:
    """Follow the CLI's queue of prompts that were typed while it worked."""
    match row.operation:
        case "enqueue":
            is_own = _OWN_PROMPT.match(row.text) is not None
            queue.append(("" if is_own else lenient.strip_wrappers(row.text, _WRAPPERS), place))
        case "popAll":
            queue.clear()
        case "dequeue" | "remove" | "popOne" if queue:
            queue.pop(0)
        case _:
            pass


def _settle_queue(facts: Collector, queue: list[tuple[str, str]]) -> None:
    """Add the prompts still queued at the end: the user sent them, but the agent never read them."""
    said = {one.text for one in facts.conversation if one.role == "user"}
    limit_text = facts.limit_text
    for text, place in queue:
        if text and text not in said:
            facts.hear_user(text, place)
    facts.limit_text = limit_text
