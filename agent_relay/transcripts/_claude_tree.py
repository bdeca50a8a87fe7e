"""Read Claude Code's rows as a tree, and select the branch the user sees."""

from collections.abc import Iterable
from datetime import datetime

import msgspec

from agent_relay.transcripts import lenient_json as lenient
from agent_relay.transcripts._claude_usage import ClaudeLine, is_queued_prompt

# Rows that may hold a message, or no type, and say nothing of their own.
_SILENT = ("attachment", "queue-operation", "system", "summary", "progress", "agent-name", "custom-title")
_SUMMARY_ROOTS = ("compact_boundary", "microcompact_boundary")


class _Line(ClaudeLine, rename="camel"):
    subtype: str = ""
    operation: str = ""
    parent_uuid: str | None = None
    logical_parent_uuid: str | None = None
    source_tool_assistant: str | None = msgspec.field(default=None, name="sourceToolAssistantUUID")
    origin: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    message: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    tool_use_result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    attachment: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    content: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class Result(msgspec.Struct, frozen=True, rename="camel"):
    """The kept parts of `toolUseResult`, without the whole file contents in it."""

    type: str = ""
    status: str = ""
    interrupted: bool = False
    background_task_id: str | None = None
    agent_id: str | None = None
    return_code_interpretation: str | None = None
    structured_patch: list[dict[str, object]] | None = None
    task: dict[str, object] | None = None


class _Message(msgspec.Struct):
    """The part of a message that shows whether there is anything to read in it."""

    content: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_NO_RESULT = Result()


class ClaudeRow(msgspec.Struct):
    """One row of interest. `parts` is the message's content as a list of parts.

    `is_continuation` is whether it is the prompt by which the agent goes on by itself after a limit's reset.
    """

    number: int
    type: str
    uuid: str = ""
    parent: str | None = None
    continues: bool = False
    source: str = ""
    at: datetime | None = None
    cwd: str = ""
    session_id: str = ""
    is_meta: bool = False
    is_summary: bool = False
    is_api_error: bool = False
    is_continuation: bool = False
    operation: str = ""
    text: str = ""
    message_id: str = ""
    model: str = ""
    stop_reason: str = ""
    usage: dict[str, object] | None = None
    parts: tuple[dict[str, object], ...] = ()
    result: Result = _NO_RESULT


_lines = msgspec.json.Decoder(_Line)
_messages = msgspec.json.Decoder(_Message)
_results = msgspec.json.Decoder(Result)


def read_rows(lines: Iterable[bytes], counter: lenient.LineCounter) -> list[ClaudeRow]:
    """Read the rows of the main conversation in file order, each uuid once, without subagents' rows."""
    rows: list[ClaudeRow] = []
    seen: set[str] = set()
    for number, line in lenient.iterate_records(lines, _lines, counter):
        if line.is_sidechain or line.uuid in seen:
            continue
        if line.type == "queue-operation":
            content = lenient.decode_raw(line.content)
            text = content if isinstance(content, str) else ""
            rows.append(ClaudeRow(number, line.type, operation=line.operation, text=text))
        elif _is_strange(line):
            counter.skip(counter.last[-1])
        elif line.uuid:
            seen.add(line.uuid)
            rows.append(_build_row(number, line, line.uuid))
    return rows


def _is_strange(line: _Line) -> bool:
    """Check whether the row belongs to a conversation but has an unknown form."""
    if line.type in ("user", "assistant"):
        return not line.uuid or not _has_content(line.message)
    if not line.type:
        return True
    return (
        bool(line.uuid) and line.type not in _SILENT and lenient.has_words(lenient.decode_raw(line.message))
    )


def _has_content(message: msgspec.Raw) -> bool:
    """Check whether the message has content of a known kind, without decoding all of it."""
    try:
        found = _messages.decode(message) if message else _Message()
    except (msgspec.DecodeError, RecursionError):
        return isinstance(lenient.get_map(lenient.decode_raw(message)).get("content"), str | list)
    return bytes(memoryview(found.content)[:1]) in (b'"', b"[")


def _build_row(number: int, line: _Line, uuid: str) -> ClaudeRow:
    message = lenient.get_map(lenient.decode_raw(line.message))
    parts, text = _split_content(message.get("content"))
    if line.type == "attachment":
        text = _queued_prompt(lenient.get_map(lenient.decode_raw(line.attachment)))
    usage = message.get("usage")
    return ClaudeRow(
        number,
        line.type,
        uuid=uuid,
        parent=line.parent_uuid or line.logical_parent_uuid,
        continues=line.subtype in _SUMMARY_ROOTS or bool(line.is_compact_summary),
        source=line.source_tool_assistant or line.parent_uuid or "",
        at=lenient.parse_moment(line.timestamp),
        cwd=line.cwd or "",
        session_id=line.session_id or "",
        is_meta=bool(line.is_meta),
        is_summary=bool(line.is_compact_summary),
        is_api_error=bool(line.is_api_error_message),
        is_continuation=bool(line.is_meta) and _tell_origin(line.origin) == "auto-continuation",
        text=text,
        message_id=lenient.get_text(message, "id"),
        model=lenient.get_text(message, "model"),
        stop_reason=lenient.get_text(message, "stop_reason"),
        usage=usage if isinstance(usage, dict) else None,
        parts=parts,
        result=_decode_result(line.tool_use_result),
    )


def _split_content(content: object) -> tuple[tuple[dict[str, object], ...], str]:
    """Return the parts of a message's content and its joined text; tool output is clipped."""
    if isinstance(content, str):
        return (), content
    if not isinstance(content, list):
        return (), ""
    parts: list[dict[str, object]] = []
    texts: list[str] = []
    for part in content:
        if not isinstance(part, dict):
            continue
        match part.get("type"):
            case "text":
                texts.append(lenient.get_text(part, "text"))
            case "tool_use":
                parts.append(part)
            case "tool_result":
                parts.append({**part, "content": lenient.clip(_result_text(part.get("content")))})
            case _:
                pass  # thinking and images are nobody's words
    return tuple(parts), "\n".join(texts)


def _result_text(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [lenient.get_text(part, "text") for part in content] if isinstance(content, list) else []
    return "\n".join(text for text in texts if text)


def _tell_origin(origin: msgspec.Raw) -> str:
    return lenient.get_text(lenient.get_map(lenient.decode_raw(origin)), "kind")


def _queued_prompt(attachment: object) -> str:
    """Return the prompt the user typed while the agent worked, which is delivered as an attachment."""
    if not is_queued_prompt(attachment):
        return ""
    prompt = lenient.get_text(attachment, "prompt")
    if not prompt:
        prompt = "\n".join(lenient.get_text(part, "text") for part in lenient.get_list(attachment, "prompt"))
    return prompt


def _decode_result(raw: msgspec.Raw) -> Result:
    if not raw:
        return _NO_RESULT
    try:
        return lenient.decode_mended(bytes(raw), _results.decode)
    except (msgspec.DecodeError, RecursionError):
        return _NO_RESULT


def select_active(rows: list[ClaudeRow]) -> list[ClaudeRow]:
    """Select the rows of the branch the user sees, parents before their children.

    That is the branch of the newest row without children: rows are flushed in batches, and an answer may be
    above its prompt in the file. Parents lost with a torn line are replaced by the row before, so that the
    older history is kept: only a prompt without a parent starts the conversation anew. Calls and results of
    parallel tools hang beside the chain and are included.
    """
    tree = [row for row in rows if row.uuid]
    positions = {row.uuid: position for position, row in enumerate(tree)}
    active = _climb(tree, positions, _find_leaf(tree))
    messages = {row.message_id for row in tree if row.uuid in active and row.message_id}
    active.update(row.uuid for row in tree if row.message_id in messages)
    active.update(row.uuid for row in tree if row.source in active and _is_tool_result(row))
    return _order([row for row in rows if not row.uuid or row.uuid in active])


def _find_leaf(tree: list[ClaudeRow]) -> int:
    """Return the position of the newest row without children, -1 if there are no rows."""
    parents = {row.parent for row in tree}
    leaf, newest = len(tree) - 1, None
    for position, row in enumerate(tree):
        is_newer = newest is None or (row.at is not None and row.at >= newest)
        if row.uuid not in parents and is_newer and row.at is not None:
            leaf, newest = position, row.at
    return leaf


def _climb(tree: list[ClaudeRow], positions: dict[str, int], position: int) -> set[str]:
    """Return the uuids from the row at `position` up to the prompt that began the conversation."""
    active: set[str] = set()
    while position >= 0:
        row = tree[position]
        is_known = row.uuid in active
        active.add(row.uuid)
        if row.parent is None and row.type == "user" and row.text and not row.continues:
            break
        parent = positions.get(row.parent or "")
        if is_known or parent is None or tree[parent].uuid in active:
            position -= 1
        else:
            position = parent
    return active


def _order(rows: list[ClaudeRow]) -> list[ClaudeRow]:
    """Return the rows in file order, but with every parent above its children."""
    by_uuid = {row.uuid: row for row in rows if row.uuid}
    done: set[str] = set()
    ordered: list[ClaudeRow] = []
    for row in rows:
        line: list[ClaudeRow] = []
        above: ClaudeRow | None = row
        while above is not None and above.uuid not in done:
            line.append(above)
            done.add(above.uuid)
            above = by_uuid.get(above.parent or "")
        done.discard("")  # rows outside the tree have no uuid and are all kept
        ordered.extend(reversed(line))
    return ordered


def _is_tool_result(row: ClaudeRow) -> bool:
    return row.type == "user" and any(part.get("type") == "tool_result" for part in row.parts)
