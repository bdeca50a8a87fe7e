"""Reads Claude Code's session files: JSON lines that form a tree (measured on 2.1.197 and 2.1.330)."""

import re
from collections.abc import Iterable
from itertools import islice

from agent_relay.domain.facts import Facts, Tokens
from agent_relay.logic.transcripts.claude_rows import Row, read_rows, select_active
from agent_relay.logic.transcripts.claude_tools import Tools
from agent_relay.logic.transcripts.collect import Collector
from agent_relay.logic.transcripts.lines import Counter, get_count
from agent_relay.logic.transcripts.shape import Peek, Source
from agent_relay.logic.transcripts.words import compile_wrappers, strip_wrappers

_WRAPPERS = compile_wrappers(
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
# What it queues for itself at a limit's reset; its own row says who wrote it, the queue's does not.
_OWN_PROMPT = re.compile(
    r"\AYour claude\.ai usage (?:limit has reset|is available again before the usage-limit reset)\."
    r" Continue the task "
)
_PEEK_ROWS = 60


def read_claude(source: Source) -> Facts:
    """The facts of one session file; the branch the user sees, compacted history included."""
    counter = Counter()
    rows = select_active(read_rows(source.lines, counter))
    facts = Collector(agent="claude", place=source.place)
    tools = Tools(facts)
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
            _say(facts, strip_wrappers(row.text, _WRAPPERS), place)
    _settle_queue(facts, queue)
    tools.finish()
    return facts.build(
        native_id=native_id or source.native_id,
        cwd=cwd or source.cwd,
        model=model,
        counter=counter,
    )


def peek_claude(lines: Iterable[bytes]) -> Peek:
    """Session id, working folder and first prompt, from the first rows."""
    rows = read_rows(islice(lines, _PEEK_ROWS), Counter())
    known = [row for row in rows if row.session_id]
    words = (strip_wrappers(row.text, _WRAPPERS) for row in rows if _is_prompt(row))
    return Peek(
        native_id=known[0].session_id if known else "",
        cwd=next((row.cwd for row in known if row.cwd), ""),
        title=next((text for text in words if text), ""),
        started_at=next((row.at for row in rows if row.at), None),
        is_main=bool(known),
    )


def _is_prompt(row: Row) -> bool:
    if row.type != "user" or row.is_meta or row.is_summary or row.parts:
        return False
    return not _INTERRUPTED.match(row.text)


def _hear_assistant(facts: Collector, tools: Tools, row: Row, place: str) -> None:
    if row.is_api_error:
        facts.limit_text = row.text.strip()
        facts.answered = False
        return
    if row.model == "<synthetic>":
        return
    if row.usage is not None:
        # One answer spans several rows that repeat its usage; the last one is complete.
        facts.tokens[row.message_id or row.uuid] = _parse_tokens(row.usage)
    if row.text.strip():
        facts.hear_agent(row.text.strip(), place)
        facts.answered = row.stop_reason != "tool_use"
    for part in row.parts:
        if part.get("type") == "tool_use":
            facts.answered = False
            tools.call(part, place)


def _hear_user_row(facts: Collector, tools: Tools, row: Row, following: Row | None, place: str) -> None:
    for part in row.parts:
        if part.get("type") == "tool_result":
            facts.answered = False
            tools.answer(part, row.result, place)
    if row.is_summary:
        found = _SUMMARY.search(row.text)
        facts.summary = (found[1] if found else row.text).strip()
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
    _say(facts, strip_wrappers(row.text, _WRAPPERS), place)


def _hear_command(facts: Collector, row: Row, following: Row | None, place: str) -> None:
    """A slash command is a prompt only where its expansion follows; the CLI's own ones print instead."""
    name, args = _COMMAND.search(row.text), _ARGS.search(row.text)
    expands = following is not None and following.type == "user" and following.is_meta
    if name and expands and following and "<local-command" not in following.text:
        _say(facts, f"{name[1].rstrip()} {args[1].strip() if args else ''}".strip(), place)


def _say(facts: Collector, text: str, place: str) -> None:
    if text:
        facts.hear_user(text, place)


def _queue(queue: list[tuple[str, str]], row: Row, place: str) -> None:
    """Follow the CLI's queue of prompts typed while it worked."""
    match row.operation:
        case "enqueue":
            is_own = _OWN_PROMPT.match(row.text) is not None
            queue.append(("" if is_own else strip_wrappers(row.text, _WRAPPERS), place))
        case "popAll":
            queue.clear()
        case "dequeue" | "remove" | "popOne" if queue:
            queue.pop(0)
        case _:
            pass


def _settle_queue(facts: Collector, queue: list[tuple[str, str]]) -> None:
    """Prompts still queued at the end were sent by the user and seen by nobody."""
    said = {one.text for one in facts.conversation if one.role == "user"}
    limit_text = facts.limit_text
    for text, place in queue:
        if text and text not in said:
            facts.hear_user(text, place)
    facts.limit_text = limit_text


def _parse_tokens(usage: dict[str, object]) -> Tokens:
    """Claude's input count leaves cached and cache-written tokens out."""
    return Tokens(
        input=get_count(usage, "input_tokens"),
        cached=get_count(usage, "cache_read_input_tokens"),
        cache_write=get_count(usage, "cache_creation_input_tokens"),
        output=get_count(usage, "output_tokens"),
    )
