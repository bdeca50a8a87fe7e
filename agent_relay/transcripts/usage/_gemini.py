"""Read usage from Gemini CLI's session files (measured on 0.61.0).

A message is written again under its id. Rewritten lists (`$set.messages`) repeat old messages, at times
under new ids; only each message's own line counts. What the user takes back with a rewind was used
nevertheless.
"""

from collections.abc import Iterator

import msgspec

from agent_relay.transcripts._gemini_format import SYSTEM_PROMPT, count_change, parse_tokens
from agent_relay.transcripts.lenient_json import decode_raw, get_text
from agent_relay.transcripts.usage.records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    decode_lines,
    note_moment,
)

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


def read_gemini_usage(data: bytes, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for record in decode_lines(data, _usage_records, memory):
        yield from _read_record(record, memory)


def _read_record(record: _Record, memory: ReaderState) -> Iterator[UsageRecord]:
    at = note_moment(memory, record.timestamp or record.start_time)
    if record.session_id and not record.id:
        memory.is_side = record.kind == "subagent"
        memory.session = memory.session or record.session_id
        if not memory.is_told:
            memory.is_told = True
            yield SessionOpened(memory.session, memory.cwd, memory.parent, memory.is_side)
        return
    key = record.id or f"{memory.session}/{at}"
    match record.type:
        case "user":
            if not memory.is_side and _is_prompt(decode_raw(record.content)):
                yield PromptSent(key, at, memory.session)
        case "error":
            yield TurnFailed(key, at, memory.session)
        case "gemini":
            if record.tokens is not None:
                yield AnswerUsage(key, at, memory.session, record.model or "", *parse_tokens(record.tokens))
            yield from _read_calls(decode_raw(record.tool_calls), at, memory)
        case _:
            pass


def _is_prompt(content: object) -> bool:
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = [get_text(part, "text") for part in parts]
    return any(texts) and not any(text.startswith(_OWN_WORDS) for text in texts)


def _read_calls(calls: object, at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    for call in calls if isinstance(calls, list) else []:
        counts = count_change(call)
        if counts is not None and get_text(call, "name") in _EDITS and get_text(call, "status") == "success":
            yield LinesChanged(get_text(call, "id") or f"{memory.session}/{at}", at, memory.session, *counts)
