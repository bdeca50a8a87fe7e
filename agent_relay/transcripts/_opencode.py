"""Read facts and usage from opencode's database or an exported session (1.18.33)."""

from collections.abc import Iterable, Iterator, Mapping

from agent_relay.domain.facts import Facts
from agent_relay.transcripts import usage_records as records
from agent_relay.transcripts.fact_reading import (
    Action,
    Collector,
    EditedLines,
    Peek,
    Tables,
    TranscriptSource,
    join_edits,
    list_first_lines,
    list_replaced_lines,
    list_unified_lines,
)
from agent_relay.transcripts.lenient_json import (
    LineCounter,
    count_lines,
    count_replacement,
    count_unified,
    decode_text,
    get_count,
    get_list,
    get_map,
    get_text,
    get_whole,
    join_text,
    parse_moment,
)

ABORTED = "MessageAbortedError"
"""The name of a message's error if the user broke it off."""


def parse_tokens(message: Mapping[str, object]) -> records.TokenCounts:
    """Convert one message's token counts.

    Its input count excludes cached tokens, its output count the reasoning.
    """
    tokens, cache = get_map(message, "tokens"), get_map(message, "tokens", "cache")
    reasoning = records.get_tokens(tokens, "reasoning")
    return records.TokenCounts(
        input=records.get_tokens(tokens, "input"),
        cached=records.get_tokens(cache, "read"),
        cache_write=records.get_tokens(cache, "write"),
        output=records.get_tokens(tokens, "output") + reasoning,
        reasoning=reasoning,
    )


_REFUSED = ("rejected permission", "prevents you from using", "Tool not found", "Invalid")
_PATCH_ACTIONS: dict[str, Action] = {"add": "created", "delete": "deleted", "move": "renamed"}


def hear_tool(facts: Collector, part: Mapping[str, object], place: str) -> None:
    """Add the facts of one tool part, in whatever state it was left."""
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
            _hear_edit(facts, path, given, metadata, is_new=is_new, place=place)
        case "write":
            is_new = metadata.get("exists") is False
            _hear_edit(facts, path, given, metadata, is_new=is_new, place=place)
        case "apply_patch" | "patch":
            _hear_patch(facts, metadata, place)
        case "todowrite":
            todos = get_list(given, "todos")
            facts.replace_plan([(get_text(todo, "content"), get_text(todo, "status")) for todo in todos])
        case _:
            pass


def _hear_edit(
    facts: Collector,
    path: str,
    given: Mapping[str, object],
    metadata: Mapping[str, object],
    *,
    is_new: bool,
    place: str,
) -> None:
    action: Action = "created" if is_new else "modified"
    counts, lines = _count(given, metadata), _list_lines(given, metadata)
    facts.touch(path, action, place, counts=counts, lines=lines)


def _list_lines(given: Mapping[str, object], metadata: Mapping[str, object]) -> EditedLines:
    """List the lines an edit removed and added, from its diff, else from the tool's arguments."""
    diff = get_text(metadata, "diff") or get_text(get_map(metadata, "filediff"), "patch")
    if diff:
        return list_unified_lines(diff)
    if get_text(given, "content"):
        return list_first_lines(get_text(given, "content"))
    return join_edits(
        list_replaced_lines(get_text(edit, "oldString"), get_text(edit, "newString"))
        for edit in get_list(given, "edits") or [given]
    )


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
        lines = list_unified_lines(get_text(file, "diff") or get_text(file, "patch"))
        facts.touch(
            moved or path, action, place, counts=counts, lines=lines, previous_path=path if moved else None
        )


TABLES = Tables(
    session="SELECT * FROM session WHERE id = ?",
    newest="SELECT * FROM session WHERE parent_id IS NULL ORDER BY time_updated DESC LIMIT 200",
    messages="SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
    parts="SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY message_id, id",
    todos="SELECT content, status FROM todo WHERE session_id = ? ORDER BY position",
    # Ids sort by time. The message itself comes again: it may have been incomplete.
    oldest="SELECT min(id) AS id FROM message WHERE session_id = ?",
    later_messages="SELECT id, data FROM message WHERE session_id = ? AND id >= ? ORDER BY time_created, id",
    later_parts="SELECT id, message_id, data FROM part WHERE session_id = ? AND message_id >= ?"
    " ORDER BY message_id, id",
    columns={
        "native_id": "id",
        "cwd": "directory",
        "title": "title",
        "updated": "time_updated",
        "started": "time_created",
    },
)


def unpack_export(document: object) -> TranscriptSource:
    """Unpack the session of an `opencode export` document; `session` is `None` for anything else."""
    info = get_map(document, "info")
    messages: list[Mapping[str, object]] = []
    parts: list[Mapping[str, object]] = []
    for entry in get_list(document, "messages"):
        message = get_map(entry, "info")
        messages.append(message)
        own = {"messageID": get_text(message, "id")}
        parts.extend({**own, **get_map(part)} for part in get_list(entry, "parts"))
    session = info if get_text(info, "id") else None
    return TranscriptSource(session=session, messages=tuple(messages), parts=tuple(parts))


def peek_opencode(lines: Iterable[bytes]) -> Peek:
    """Read session id, working folder and title of an export."""
    document = decode_text(b"\n".join(lines).decode("utf-8", "replace"))
    info = get_map(document, "info")
    return Peek(
        native_id=get_text(info, "id"),
        cwd=get_text(info, "directory"),
        title=get_text(info, "title"),
        started_at=parse_moment(get_map(info, "time").get("created")),
        is_main=bool(info) and not get_text(info, "parentID"),
    )


def read_opencode(source: TranscriptSource) -> Facts:
    """Read the facts of one session, without what the user reverted."""
    session = source.session or {}
    facts = Collector(agent="opencode", place=source.place)
    facts.see(parse_moment(session.get("time_created") or get_map(session, "time").get("created")))
    parts = _group_parts(source.parts)
    reverted = _find_revert(session)
    model = cwd = ""
    counter = LineCounter()
    for row in source.messages:
        message = _unfold(row)
        number = get_text(message, "id")
        line = _render_row(row)
        counter.see(line)
        if not get_text(message, "role"):
            counter.skip(line)
            continue
        if reverted and number >= reverted:
            break
        facts.see(parse_moment(get_map(message, "time").get("created")))
        model = get_text(message, "modelID") or model
        cwd = get_text(get_map(message, "path"), "cwd") or cwd
        place = f"{source.place}#{number}"
        if message["role"] == "user":
            facts.hear_user(_join_parts(parts.get(number, [])), place)
        else:
            _hear_assistant(facts, message, parts.get(number, []), place)
    todos = [(get_text(todo, "content"), get_text(todo, "status")) for todo in source.todos]
    if todos:
        facts.replace_plan(todos)
    return facts.build(
        native_id=get_text(session, "id") or source.native_id,
        cwd=get_text(session, "directory") or cwd or source.cwd,
        model=model,
        counter=counter,
    )


def _unfold(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return a row with its JSON column expanded; a row that is expanded already is unchanged."""
    if "data" not in row:
        return row
    data = row["data"]
    found = decode_text(data) if isinstance(data, str) else data
    message = row.get("message_id") or row.get("messageID") or ""
    return {**get_map(found), "id": row.get("id") or "", "messageID": message}


def _render_row(row: Mapping[str, object]) -> bytes:
    """Return the row verbatim, to be quoted if it is not understood."""
    data = row.get("data", row)
    text = data if isinstance(data, str) else str(data)
    return text.encode("utf-8", "replace")


def _group_parts(rows: Iterable[Mapping[str, object]]) -> dict[str, list[Mapping[str, object]]]:
    parts: dict[str, list[Mapping[str, object]]] = {}
    for row in rows:
        part = _unfold(row)
        parts.setdefault(get_text(part, "messageID"), []).append(part)
    return parts


def _find_revert(session: Mapping[str, object]) -> str:
    """Return the id of the first message the user reverted, empty for none; ids sort by time."""
    revert = session.get("revert")
    found = decode_text(revert) if isinstance(revert, str) else revert
    return get_text(found, "messageID")


def _join_parts(parts: list[Mapping[str, object]]) -> str:
    """Return the text of a message's parts, without texts the program added (marked synthetic)."""
    spoken = [part for part in parts if not part.get("synthetic") and not part.get("ignored")]
    return join_text(spoken).strip()


def _hear_assistant(
    facts: Collector, message: Mapping[str, object], parts: list[Mapping[str, object]], place: str
) -> None:
    facts.tokens[get_text(message, "id")] = parse_tokens(message)
    text = _join_parts(parts)
    if message.get("summary") is True or get_text(message, "mode") == "compaction":
        facts.summarize(text)
        return
    if text:
        facts.hear_agent(text, place)
        facts.answered = get_text(message, "finish") not in ("tool-calls", "tool_use")
    for part in parts:
        if get_text(part, "type") == "tool":
            hear_tool(facts, part, f"{place}/{get_text(part, 'id')}")
            facts.answered = facts.answered and bool(text)
    _hear_error(facts, message)
    facts.see(parse_moment(get_map(message, "time").get("completed")))


def _hear_error(facts: Collector, message: Mapping[str, object]) -> None:
    error = get_map(message, "error")
    if not error:
        return
    facts.answered = False
    if get_text(error, "name") == ABORTED:
        facts.interrupted = True
    else:
        facts.limit_text = get_text(get_map(error, "data"), "message") or get_text(error, "name")


SESSIONS = "SELECT id, parent_id, directory FROM session"
MESSAGES = "SELECT id, session_id, data FROM message"


def read_opencode_session(row: Mapping[str, object]) -> Iterator[records.UsageRecord]:
    """Yield the session that a row of the table of sessions describes."""
    parent = get_text(row, "parent_id")
    if get_text(row, "id"):
        yield records.SessionOpened(get_text(row, "id"), get_text(row, "directory"), parent, bool(parent))


def read_opencode_message(
    row: Mapping[str, object], memory: records.ReaderState
) -> Iterator[records.UsageRecord]:
    """Yield the usage records of one row of the table of messages; only complete answers count."""
    data = row.get("data")
    message = get_map(decode_text(data)) if isinstance(data, str) else {}
    key, session = get_text(row, "id"), get_text(row, "session_id")
    if not message or not key:
        memory.skipped += 1
        return
    times = get_map(message, "time")
    at = records.note_moment(memory, times.get("created"))
    if get_text(message, "role") == "user":
        yield records.PromptSent(f"{at}", at, session)
        yield from _read_changes(message, key, at, session)
        return
    if get_whole(times, "completed") is None:
        return
    counts = parse_tokens(message)
    key = f"{at}/{get_whole(times, 'completed')}/{counts.input}/{counts.output - counts.reasoning}"
    used = records.AnswerUsage(key, at, session, get_text(message, "modelID"), *counts)
    if used.tokens:
        yield used
    error = get_map(message, "error")
    if error and get_text(error, "name") != ABORTED:
        yield records.TurnFailed(get_text(row, "id"), at, session)


def _read_changes(
    message: Mapping[str, object], key: str, at: int, session: str
) -> Iterator[records.UsageRecord]:
    diffs = get_list(get_map(message, "summary"), "diffs")
    added = sum(get_count(diff, "additions") for diff in diffs)
    removed = sum(get_count(diff, "deletions") for diff in diffs)
    if added or removed:
        yield records.LinesChanged(key, at, session, added, removed)
