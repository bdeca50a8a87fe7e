"""Read usage from Claude Code's session files and those of its subagents (measured on 2.1.197).

An answer spans several lines that repeat its usage, partial counts first; a fork copies the whole history
under a session id of its own, with the same message ids.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

import msgspec

from agent_relay.transcripts._diff_counts import count_hunks, count_lines
from agent_relay.transcripts.lenient_json import decode_mended, decode_raw, get_list, get_map, get_text
from agent_relay.transcripts.usage.line_spans import ByteBlock, Span, has_near_ends, iterate_spans
from agent_relay.transcripts.usage.records import (
    MOST_TOKENS,
    AnswerUsage,
    LinesChanged,
    Moment,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    get_tokens,
    keep_moment,
    note_moment,
)

# A row's own fields stand before and after its message: 700 and 1,500 bytes hold them with long folder names.
_HEAD, _TAIL = 700, 1500
_ASSISTANT, _USER = b'"type":"assistant"', b'"type":"user"'
_OWN_WORDS = ("<command-", "<local-command-", "<bash-", "<task-notification", "[Request interrupted by user")


_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Message(msgspec.Struct):
    id: str | None = None
    model: str | None = None
    usage: dict[str, object] | None = None
    content: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


class _Result(msgspec.Struct, rename="camel"):
    type: str | None = None
    content: str | None = None
    structured_patch: list[dict[str, object]] | None = None


class _Row(msgspec.Struct, rename="camel"):
    type: str = ""
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    request_id: str | None = None
    is_sidechain: bool | None = None
    is_meta: bool | None = None
    is_compact_summary: bool | None = None
    is_api_error_message: bool | None = None
    message: _Message | None = None
    attachment: dict[str, object] | None = None


class _Edit(msgspec.Struct, rename="camel"):
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | None = None
    tool_use_result: _Result | str | None = None


class _Tokens(msgspec.Struct, gc=False):
    ephemeral_1h_input_tokens: _Count = 0


class _Usage(msgspec.Struct, gc=False):
    input_tokens: _Count = 0
    output_tokens: _Count = 0
    cache_read_input_tokens: _Count = 0
    cache_creation_input_tokens: _Count = 0
    cache_creation: _Tokens | None = None


class _Said(msgspec.Struct, gc=False):
    id: str
    model: str
    usage: _Usage


class _Answer(msgspec.Struct, rename="camel", gc=False):
    """A row in the form of nearly all answers; any other answer is read as a `_Row`."""

    type: Literal["assistant"]
    message: _Said
    session_id: str
    timestamp: Moment
    cwd: str = ""
    is_api_error_message: bool = False


_rows = msgspec.json.Decoder(_Row)
_answers = msgspec.json.Decoder(_Answer)
_edits = msgspec.json.Decoder(_Edit)


def read_claude_usage(data: ByteBlock, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for span in iterate_spans(data):
        kind = _find_kind(data, span)
        if kind == "other":
            continue
        line = data[span[0] : span[1]]
        if kind == "answer":
            used = _read_plain_answer(line, memory)
            if used is not None:
                yield used
                continue
        try:
            if kind == "edit":
                yield from _read_edit(decode_mended(line, _edits.decode), memory)
            else:
                yield from _read_row(decode_mended(line, _rows.decode), memory)
        except (msgspec.DecodeError, RecursionError):
            memory.skipped += 1


def _read_plain_answer(line: bytes, memory: ReaderState) -> AnswerUsage | None:
    """Read the answer of an ordinary line; return `None` for a line that needs the full decoder."""
    if not memory.is_told:
        return None
    try:
        row = _answers.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    said = row.message
    if row.is_api_error_message or not (said.id and row.session_id) or said.model == "<synthetic>":
        return None
    usage, memory.session = said.usage, row.session_id
    return AnswerUsage(
        said.id,
        keep_moment(memory, row.timestamp),
        row.session_id,
        said.model,
        usage.input_tokens,
        usage.cache_read_input_tokens,
        usage.cache_creation_input_tokens,
        usage.output_tokens,
        0,
        usage.cache_creation.ephemeral_1h_input_tokens if usage.cache_creation is not None else 0,
    )


def _find_kind(data: ByteBlock, span: Span) -> str:
    """Tell what a line may hold, by literals near its ends; most hold tools' output and no usage."""
    if has_near_ends(data, span, _ASSISTANT, head=_HEAD, tail=_TAIL):
        return "answer"
    start, end = span
    if has_near_ends(data, span, _USER, head=_HEAD, tail=_TAIL):
        if data.find(b'"tool_use_id"', start, min(end, start + _TAIL)) < 0:
            return "row"
        is_edit = data.find(b'"userModified"', max(start, end - _TAIL), end) >= 0
        return "edit" if is_edit else "other"
    if data.find(b'"queued_command"', start, min(end, start + _TAIL)) >= 0:
        return "row"
    # Rows written in a way we do not know are looked into whole.
    return "row" if data.find(b'"message"', start, end) >= 0 else "other"


def _read_row(row: _Row, memory: ReaderState) -> Iterator[UsageRecord]:
    at = note_moment(memory, row.timestamp)
    memory.session = row.session_id or memory.session
    if row.cwd and not memory.is_told and memory.session:
        memory.is_told = True
        yield SessionOpened(memory.session, row.cwd)
    message = row.message
    if row.type == "assistant" and message is not None and message.usage is not None:
        yield from _read_answer(row, message, message.usage, at, memory.session)
    elif _is_prompt(row):
        yield PromptSent(row.uuid or f"{memory.session}/{at}", at, memory.session)


def _read_answer(
    row: _Row, message: _Message, usage: dict[str, object], at: int, session: str
) -> Iterator[UsageRecord]:
    if row.is_api_error_message:
        yield TurnFailed(row.uuid or f"{session}/{at}", at, session)
        return
    if message.model == "<synthetic>":
        return
    yield AnswerUsage(
        key=message.id or row.request_id or row.uuid or f"{session}/{at}",
        at=at,
        session=session,
        model=message.model or "",
        input=get_tokens(usage, "input_tokens"),
        cached=get_tokens(usage, "cache_read_input_tokens"),
        cache_write=get_tokens(usage, "cache_creation_input_tokens"),
        output=get_tokens(usage, "output_tokens"),
        cache_write_long=get_tokens(get_map(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
    )


def _is_prompt(row: _Row) -> bool:
    """Check whether the row is a prompt of the user's: typed, or queued while the agent worked."""
    if row.is_sidechain or row.is_meta or row.is_compact_summary:
        return False
    if row.type == "attachment":
        return get_text(row.attachment, "type") == "queued_command" and not get_map(row.attachment).get(
            "isMeta"
        )
    if row.type != "user" or row.message is None:
        return False
    content = decode_raw(row.message.content)
    if isinstance(content, str):
        return bool(content) and not content.startswith(_OWN_WORDS)
    parts = content if isinstance(content, list) else []
    if any(get_text(part, "type") == "tool_result" for part in parts):
        return False
    texts = [get_text(part, "text") for part in parts]
    return bool(parts) and not any(text.startswith(_OWN_WORDS) for text in texts)


def _read_edit(row: _Edit, memory: ReaderState) -> Iterator[UsageRecord]:
    at = note_moment(memory, row.timestamp)
    memory.session = row.session_id or memory.session
    result = row.tool_use_result
    if not isinstance(result, _Result):
        return
    if result.structured_patch:
        added, removed = count_hunks(
            line for hunk in result.structured_patch for line in get_list(hunk, "lines")
        )
    elif result.type == "create":
        added, removed = count_lines(result.content or ""), 0
    else:
        return
    yield LinesChanged(row.uuid or f"{memory.session}/{at}", at, memory.session, added, removed)
