"""Decode Codex's ordinary lines, nearly all there are, each kind into a struct of its own.

Any other line is refused here and read by `_codex`, which reads every form; for the ordinary ones both
give the same result.
"""

from typing import Annotated, Literal

import msgspec
from msgspec.structs import astuple

from agent_relay.transcripts.usage.records import (
    MOST_TOKENS,
    AnswerUsage,
    Moment,
    PromptSent,
    ReaderState,
    keep_moment,
)

COUNT_HEAD = b'"type":"token_count","info":{"total_token_usage":'
"""The beginning of an ordinary count's payload, up to its running total."""
_CHAIN = "/".join(["%d"] * 6)
_TOTAL = b'"thread_token_usage":'
_Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]


class _Counts(msgspec.Struct, gc=False):
    input_tokens: _Count
    cached_input_tokens: _Count = 0
    cache_write_input_tokens: _Count = 0
    output_tokens: _Count = 0
    reasoning_output_tokens: _Count = 0
    total_tokens: _Count = 0


class _Info(msgspec.Struct, gc=False):
    total_token_usage: _Counts
    last_token_usage: _Counts


class _Told(msgspec.Struct, gc=False):
    type: Literal["token_count"]
    info: _Info


class _CountLine(msgspec.Struct, gc=False):
    type: Literal["event_msg"]
    timestamp: Moment
    payload: _Told


class _Response(msgspec.Struct, gc=False):
    response_id: str
    usage: _Counts
    thread_token_usage: _Counts


class _RecordLine(msgspec.Struct, gc=False):
    type: Literal["token_usage_record"]
    timestamp: Moment
    payload: _Response


class _Context(msgspec.Struct, gc=False):
    model: str


class _ContextLine(msgspec.Struct, gc=False):
    type: Literal["turn_context"]
    timestamp: Moment
    payload: _Context


class _Message(msgspec.Struct, gc=False):
    type: Literal["user_message"]
    turn_id: str = ""
    item: None = None


class _MessageLine(msgspec.Struct, gc=False):
    type: Literal["event_msg"]
    timestamp: Moment
    payload: _Message


_counts = msgspec.json.Decoder(_CountLine)
_records = msgspec.json.Decoder(_RecordLine)
_contexts = msgspec.json.Decoder(_ContextLine)
_messages = msgspec.json.Decoder(_MessageLine)


def read_plain_count(text: bytes, memory: ReaderState) -> AnswerUsage | None:
    """Read the answer of an ordinary count; return `None` if its total is the last one seen.

    Raises what decoding raises.
    """
    line = _counts.decode(text)
    info, at = line.payload.info, keep_moment(memory, line.timestamp)
    chain = _render_chain(info.total_token_usage)
    if chain == memory.total:
        return None
    memory.total = chain
    return _build_plain(info.last_token_usage, "", chain, at, memory)


def read_plain_record(text: bytes, memory: ReaderState) -> AnswerUsage | None:
    """Read the answer of an ordinary record; return `None` for one without tokens.

    Raises what decoding raises.
    """
    line = _records.decode(text)
    told = line.payload
    memory.total = chain = _render_chain(told.thread_token_usage)
    return _build_plain(told.usage, told.response_id, chain, keep_moment(memory, line.timestamp), memory)


def refuse_plain(_text: bytes, _memory: ReaderState) -> None:
    """Refuse a line of any other kind: raise DecodeError, so that it is decoded whole."""
    raise msgspec.DecodeError


def find_repeat(text: bytes) -> bytes:
    """Return the beginning of a count that only repeats the record `text`, empty if that is unknown."""
    _, _, rest = text.partition(_TOTAL)
    total, end, _ = rest.partition(b"}")
    return COUNT_HEAD + total + end if end and total.count(b"{") == 1 else b""


def read_plain_context(text: bytes, memory: ReaderState) -> None:
    """Store the model of a turn in `memory`.

    Raises what decoding raises.
    """
    line = _contexts.decode(text)
    keep_moment(memory, line.timestamp)
    memory.model = line.payload.model or memory.model


def read_plain_message(text: bytes, memory: ReaderState) -> PromptSent | None:
    """Read the prompt of an ordinary message.

    Return `None` if other records have it: a finished item, a fork's parent, or the parent of a subagent.
    Raises what decoding raises.
    """
    line = _messages.decode(text)
    at = keep_moment(memory, line.timestamp)
    if at <= memory.replays_until or memory.has_items or memory.is_side:
        return None
    return PromptSent(line.payload.turn_id or f"{memory.session}/{at}", at, memory.session)


def _render_chain(total: _Counts) -> str:
    """Render the same text as `_chain` does for the same counts."""
    chain: str = _CHAIN % astuple(total)
    return chain


def _build_plain(usage: _Counts, key: str, chain: str, at: int, memory: ReaderState) -> AnswerUsage | None:
    """Build the answer; return `None` for one without tokens."""
    sent, cached, written, output, reasoning, _ = astuple(usage)
    new = max(0, sent - cached - written)
    if not (new or cached or written or output):
        return None
    return AnswerUsage(
        key, at, memory.session, memory.model, new, cached, written, output, reasoning, 0, chain
    )
