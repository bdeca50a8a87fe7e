"""Read facts and usage from Gemini CLI's files: records replaced, rewritten, rewound (as of 0.61.0)."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from agent_relay.domain.facts import Facts
from agent_relay.transcripts import usage_records as records
from agent_relay.transcripts.fact_reading import (
    Action,
    Collector,
    EditedLines,
    Peek,
    TranscriptSource,
    list_first_lines,
    list_replaced_lines,
    list_unified_lines,
)
from agent_relay.transcripts.lenient_json import (
    LineCounter,
    compile_wrappers,
    count_lines,
    count_replacement,
    count_unified,
    decode_raw,
    get_count,
    get_list,
    get_map,
    get_text,
    has_words,
    iterate_records,
    parse_moment,
    strip_wrappers,
)

SYSTEM_PROMPT = "[System: "
"""Beginning of a prompt that the program itself sent when a turn ended on a tool's output."""


def parse_tokens(tokens: Mapping[str, object]) -> records.TokenCounts:
    """Convert Gemini's token counts.

    Its input count includes cached tokens; thoughts and tools' prompts are counted separately.
    """
    cached, thoughts = records.get_tokens(tokens, "cached"), records.get_tokens(tokens, "thoughts")
    return records.TokenCounts(
        input=max(0, records.get_tokens(tokens, "input") - cached) + records.get_tokens(tokens, "tool"),
        cached=cached,
        output=records.get_tokens(tokens, "output") + thoughts,
        reasoning=thoughts,
    )


def count_change(call: object) -> tuple[int, int] | None:
    """Count added and removed lines of an edit; `None` if the call records none."""
    display = get_map(call, "resultDisplay")
    stat = get_map(display, "diffStat")
    if "model_added_lines" in stat:
        added = get_count(stat, "model_added_lines") + get_count(stat, "user_added_lines")
        return added, get_count(stat, "model_removed_lines") + get_count(stat, "user_removed_lines")
    if get_text(display, "fileDiff"):
        return count_unified(get_text(display, "fileDiff"))
    arguments = get_map(call, "args")
    if get_text(arguments, "new_string"):
        return count_replacement(get_text(arguments, "old_string"), get_text(arguments, "new_string"))
    return (count_lines(get_text(arguments, "content")), 0) if get_text(arguments, "content") else None


_UNTRUSTED = re.compile(r"</?untrusted_context>\n?")
# The lines the CLI appends to a command's output: each at most once, in this order, the status and the signal
# only if not 0. An `Error: ` before them says why a program did not start, and counts as output.
_TRAILER = re.compile(
    r"(?:\nExit Code: (?P<status>-?\d+))?(?P<signal>\nSignal: (?:\d+|SIG\w+))?(?:\nBackground PIDs: [\d, ]+)?"
    r"(?:\nProcess Group PGID: \d+)?\Z"
)
# It stands in the last characters; looking through all of the output takes longer than reading the file.
_TRAILER_LENGTH = 4000
_NO_OUTPUT = re.compile(r"\(empty\)(?:\n|\Z)")


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
            return
        case "replace" | "edit":
            is_new = get_text(arguments, "old_string") == ""
        case "write_file":
            is_new = "new file" in output[:200]
        case _:
            return
    action: Action = "created" if is_new else "modified"
    facts.touch(path, action, place, counts=count_change(call), lines=_list_lines(call))


def _list_lines(call: object) -> EditedLines:
    """List the lines an edit removed and added, from its diff, else from the call's arguments."""
    if diff := get_text(get_map(call, "resultDisplay"), "fileDiff"):
        return list_unified_lines(diff)
    arguments = get_map(call, "args")
    if get_text(arguments, "content"):
        return list_first_lines(get_text(arguments, "content"))
    return list_replaced_lines(get_text(arguments, "old_string"), get_text(arguments, "new_string"))


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
    text = _UNTRUSTED.sub("", output).removeprefix("Output: ")
    bare = text.rstrip()
    trailer = _TRAILER.search(bare, max(0, len(bare) - _TRAILER_LENGTH))
    named = trailer["status"] if trailer else None
    is_killed = trailer is not None and trailer["signal"] is not None
    text = bare[: trailer.start()] if trailer and trailer[0] else text
    is_background = get_map(call, "args").get("is_background") is True
    if is_background:
        facts.background.append(f"shell: {command}")
    is_fine = status == "success" and not is_killed and not is_background
    exit_code = int(named) if named else 0 if is_fine else None
    empty = _NO_OUTPUT.match(text)
    facts.run(command, text[empty.end() :] if empty else text, exit_code, place)


_WRAPPERS = compile_wrappers("session_context", "hook_context", "system-reminder")
_SNAPSHOT = "<state_snapshot>"
_FOLDERS = "**Workspace Directories:**"
_PEEK_LINES = 20
_KNOWN = ("user", "gemini", "info", "error", "warning")

_records = msgspec.json.Decoder(dict[str, object])


class _Log(msgspec.Struct):
    """The replayed file: messages in order by id, with the line each was last written on."""

    header: Mapping[str, object] = msgspec.field(default_factory=dict)
    messages: dict[str, tuple[int, Mapping[str, object]]] = msgspec.field(default_factory=dict)
    texts: set[str] = msgspec.field(default_factory=set)
    summary: str = ""
    summary_line: int = 0
    context: str = ""
    is_part: bool = False

    def put(self, number: int, message: Mapping[str, object]) -> None:
        """Add a message, or replace the one with the same id in its place."""
        text = _join(message)
        if get_text(message, "type") == "user":
            self.context = self.context or (text if _FOLDERS in text else "")
            self.texts.add(text)
        self.messages[get_text(message, "id")] = (number, message)

    def rewrite(self, number: int, messages: list[object]) -> None:
        """Apply a rewritten list of messages.

        Compression drops messages from the list; they are kept here, as history, and what is new in the list
        is the summary. A resumed session repeats old messages under new ids.
        """
        is_first = not any(_words(one) for _, one in self.messages.values())
        for message in messages:
            known = get_text(message, "id") in self.messages or _join(message) in self.texts
            if isinstance(message, Mapping) and is_first:
                self.put(number, message)
            elif not known and _words(message) and (_SNAPSHOT in _words(message) or not self.is_part):
                self.summary, self.summary_line = _words(message), number
                self.texts.add(_join(message))

    def rewind(self, target: str) -> None:
        """Drop the message `target` and all after it."""
        found = list(self.messages)
        if target in self.messages:
            for key in found[found.index(target) :]:
                del self.messages[key]


def read_gemini(source: TranscriptSource) -> Facts:
    """Read the facts of one session file, or of the prompt log alone if the CLI deleted the file."""
    counter = LineCounter()
    log = _replay(source.lines, counter, is_part=source.is_part)
    facts = Collector(agent="gemini", place=source.place)
    facts.see(parse_moment(log.header.get("startTime")))
    model = ""
    for number, message in log.messages.values():
        facts.see(parse_moment(message.get("timestamp")))
        model = get_text(message, "model") or model
        _hear(facts, message, f"{source.place}:{number}")
        if number < log.summary_line:
            facts.summarize(log.summary)
    native_id = get_text(log.header, "sessionId") or source.native_id
    if not facts.conversation:
        _hear_prompts(facts, source, native_id)
    if facts.summary_turn is None:
        facts.summary = log.summary
    return facts.build(
        native_id=native_id,
        cwd=source.cwd or _find_folder(log.context),
        model=model,
        counter=counter,
    )


def peek_gemini(lines: Iterable[bytes]) -> Peek:
    """Read session id, working folder and first prompt from the first lines."""
    log = _replay(islice(lines, _PEEK_LINES), LineCounter())
    words = (_words(message) for _, message in log.messages.values())
    return Peek(
        native_id=get_text(log.header, "sessionId"),
        cwd=_find_folder(log.context),
        title=next((text for text in words if text), ""),
        started_at=parse_moment(log.header.get("startTime")),
        is_main=get_text(log.header, "kind") in ("main", "") and bool(log.header),
    )


def _replay(lines: Iterable[bytes], counter: LineCounter, *, is_part: bool = False) -> _Log:
    log = _Log(is_part=is_part)
    for number, record in iterate_records(lines, _records, counter):
        change = get_map(record, "$set")
        if isinstance(change.get("messages"), list):
            log.rewrite(number, get_list(change, "messages"))
        elif "$rewindTo" in record:
            log.rewind(get_text(record, "$rewindTo"))
        elif get_text(record, "id") and get_text(record, "type"):
            log.put(number, record)
            if get_text(record, "type") not in _KNOWN and has_words(record):
                counter.skip(counter.last[-1])
        elif get_text(record, "sessionId") and not has_words(record):
            log.header = log.header or record
        elif not change:
            counter.skip(counter.last[-1])
    return log


def _join(message: object) -> str:
    """Return the text of a message: a string, or parts that hold `text`."""
    content = get_map(message).get("displayContent") or get_map(message).get("content")
    if isinstance(content, str):
        return content
    texts = [get_text(part, "text") for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if text)


def _words(message: object) -> str:
    """Return the user's words in a message, empty if it holds none."""
    if get_text(message, "type") != "user":
        return ""
    text = strip_wrappers(_join(message), _WRAPPERS)
    return "" if text.startswith(SYSTEM_PROMPT) else text


def _hear(facts: Collector, message: Mapping[str, object], place: str) -> None:
    match get_text(message, "type"):
        case "user":
            facts.hear_user(_words(message), place)
        case "gemini":
            _hear_answer(facts, message, place)
        case "error":
            facts.limit_text = _join(message).strip()
            facts.answered = False
        case "info" if _join(message).startswith("Request cancelled"):
            facts.answered = False
            facts.interrupted = True
        case _:
            pass


def _hear_answer(facts: Collector, message: Mapping[str, object], place: str) -> None:
    tokens = get_map(message, "tokens")
    if tokens:
        facts.tokens[get_text(message, "id")] = parse_tokens(tokens)
    text = _join(message).strip()
    if text:
        facts.hear_agent(text, place)
        facts.answered = True
    for call in get_list(message, "toolCalls"):
        facts.answered = False
        hear_tool(facts, call, place)


def _hear_prompts(facts: Collector, source: TranscriptSource, native_id: str) -> None:
    """Add the prompts from the log of prompts.

    The CLI deletes a session whose only prompt got no answer when it quits; the log keeps the words.
    """
    for entry in source.prompts:
        text = get_text(entry, "message").strip()
        is_own = get_text(entry, "sessionId") == native_id
        if is_own and get_text(entry, "type") == "user" and text and not text.startswith("/"):
            facts.see(parse_moment(entry.get("timestamp")))
            facts.hear_user(text, source.place)


def _find_folder(context: str) -> str:
    """Return the first folder listed in the context the CLI gives its model."""
    _, found, rest = context.partition(_FOLDERS)
    lines = rest.lstrip("\n").split("\n", 1)
    return lines[0].strip().removeprefix("- ").strip() if found else ""


_EDITS = ("replace", "write_file")
# Sent by the program itself, not by the user.
_OWN_WORDS = (SYSTEM_PROMPT, "<session_context>", "<hook_context>")


class _Record(msgspec.Struct, rename="camel"):
    id: str | None = None
    type: str | None = None
    timestamp: str | None = None
    model: str | None = None
    tokens: dict[str, object] | None = None
    session_id: str | None = None
    start_time: str | None = None
    kind: str | None = None
    content: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    tool_calls: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_usage_records = msgspec.json.Decoder(_Record)


def read_gemini_usage(data: bytes, memory: records.ReaderState) -> Iterator[records.UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for record in records.decode_lines(data, _usage_records, memory):
        yield from _read_record(record, memory)


def _read_record(record: _Record, memory: records.ReaderState) -> Iterator[records.UsageRecord]:
    at = records.note_moment(memory, record.timestamp or record.start_time)
    if record.session_id and not record.id:
        memory.is_side = record.kind == "subagent"
        memory.session = memory.session or record.session_id
        if not memory.is_told:
            memory.is_told = True
            yield records.SessionOpened(memory.session, memory.cwd, memory.parent, memory.is_side)
        return
    key = record.id or f"{memory.session}/{at}"
    match record.type:
        case "user":
            if not memory.is_side and _is_prompt(decode_raw(record.content)):
                yield records.PromptSent(key, at, memory.session)
        case "error":
            yield records.TurnFailed(key, at, memory.session)
        case "gemini":
            if record.tokens is not None:
                yield records.AnswerUsage(
                    key, at, memory.session, record.model or "", *parse_tokens(record.tokens)
                )
            yield from _read_calls(decode_raw(record.tool_calls), at, memory)
        case _:
            pass


def _is_prompt(content: object) -> bool:
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [get_text(part, "text") for part in parts]
    return any(texts) and not any(text.startswith(_OWN_WORDS) for text in texts)


def _read_calls(calls: object, at: int, memory: records.ReaderState) -> Iterator[records.UsageRecord]:
    for call in calls if isinstance(calls, list) else []:
        counts = count_change(call)
        if counts is not None and get_text(call, "name") in _EDITS and get_text(call, "status") == "success":
            yield records.LinesChanged(
                get_text(call, "id") or f"{memory.session}/{at}", at, memory.session, *counts
            )
