"""Read usage from Claude Code's session files and those of its subagents (as of 2.1.197 and 2.1.330)."""

from collections.abc import Iterator, Mapping

import msgspec

from agent_relay.transcripts.lenient_json import (
    count_hunks,
    count_lines,
    decode_raw,
    get_list,
    get_map,
    get_text,
)
from agent_relay.transcripts.usage_records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TokenCounts,
    TurnFailed,
    UsageRecord,
    decode_lines,
    get_tokens,
    note_moment,
)

SYNTHETIC_MODEL = "<synthetic>"
"""The model of answers that the program wrote itself: nothing was sent."""


class ClaudeLine(msgspec.Struct, rename="camel"):
    """Fields of a row that both readers take; each adds how far it looks into messages and results."""

    type: str = ""
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    is_sidechain: bool | None = False
    is_meta: bool | None = False
    is_compact_summary: bool | None = False
    is_api_error_message: bool | None = False


def parse_tokens(usage: Mapping[str, object]) -> TokenCounts:
    """Convert Claude's token counts; its input count excludes cached and cache-written tokens."""
    return TokenCounts(
        input=get_tokens(usage, "input_tokens"),
        cached=get_tokens(usage, "cache_read_input_tokens"),
        cache_write=get_tokens(usage, "cache_creation_input_tokens"),
        output=get_tokens(usage, "output_tokens"),
        cache_write_long=get_tokens(get_map(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
    )


def is_queued_prompt(attachment: object) -> bool:
    """Check whether an attachment is a prompt that the user typed while the agent worked."""
    return get_text(attachment, "type") == "queued_command" and not get_map(attachment).get("isMeta")


def count_patch(hunks: list[dict[str, object]]) -> tuple[int, int]:
    """Count added and removed lines of a result's `structuredPatch`."""
    return count_hunks(line for hunk in hunks for line in get_list(hunk, "lines"))


_OWN_WORDS = ("<command-", "<local-command-", "<bash-", "<task-notification", "[Request interrupted by user")


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: dict[str, object] | None = None
    content: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Edit(msgspec.Struct, rename="camel"):
    """The part of a tool's result that tells of changed lines."""

    type: str | None = None
    content: str | None = None
    structured_patch: list[dict[str, object]] | None = None


class _Row(ClaudeLine, rename="camel"):
    request_id: str | None = None
    message: _Message | None = None
    attachment: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)
    tool_use_result: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_rows = msgspec.json.Decoder(_Row)
_edits = msgspec.json.Decoder(_Edit)


def read_claude_usage(data: bytes, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for row in decode_lines(data, _rows, memory):
        at = note_moment(memory, row.timestamp)
        session = memory.session = row.session_id or memory.session
        if row.cwd and not memory.is_told and session:
            memory.is_told = True
            yield SessionOpened(session, row.cwd)
        message, place = row.message, f"{session}/{at}"
        if row.type == "assistant" and message is not None and message.usage is not None:
            if row.is_api_error_message:
                yield TurnFailed(row.uuid or place, at, session)
            elif message.model != SYNTHETIC_MODEL:
                key = message.id or row.request_id or row.uuid or place
                yield AnswerUsage(key, at, session, message.model or "", *parse_tokens(message.usage))
        elif b'"userModified"' in bytes(row.tool_use_result):
            yield from _read_edit(row, at, session)
        elif _is_prompt(row):
            yield PromptSent(row.uuid or place, at, session)


def _is_prompt(row: _Row) -> bool:
    """Check whether the row is a prompt of the user's: typed, or queued while the agent worked."""
    if row.is_sidechain or row.is_meta or row.is_compact_summary:
        return False
    if row.type == "attachment":
        return is_queued_prompt(decode_raw(row.attachment))
    if row.type != "user" or row.message is None or row.tool_use_result:
        return False
    content = decode_raw(row.message.content)
    if isinstance(content, str):
        return bool(content) and not content.startswith(_OWN_WORDS)
    parts = content if isinstance(content, list) else []
    if any(get_text(part, "type") == "tool_result" for part in parts):
        return False
    texts = [get_text(part, "text") for part in parts]
    return bool(parts) and not any(text.startswith(_OWN_WORDS) for text in texts)


def _read_edit(row: _Row, at: int, session: str) -> Iterator[UsageRecord]:
    try:
        edit = _edits.decode(row.tool_use_result)
    except (msgspec.DecodeError, RecursionError):
        return
    if edit.structured_patch:
        counts = count_patch(edit.structured_patch)
    elif edit.type == "create":
        counts = count_lines(edit.content or ""), 0
    else:
        return
    yield LinesChanged(row.uuid or f"{session}/{at}", at, session, *counts)
