"""Decode Codex's ordinary lines, nearly all there are, each kind into a shape of its own.

Whatever is odd about a line is refused here, and read as any line by `codex`, which says the same of
these.
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
"""How the payload of an ordinary count begins, up to its running total."""
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
    """The answer of an ordinary count, `None` where it was told before. Raises as decoding does."""
    line = _counts.decode(text)
    info, at = line.payload.info, keep_moment(memory, line.timestamp)
    chain = _render_chain(info.total_token_usage)
    if chain == memory.total:
        return None
    memory.total = chain
    return _build_plain(info.last_token_usage, "", chain, at, memory)


def read_plain_record(text: bytes, memory: ReaderState) -> AnswerUsage | None:
    """The answer of an ordinary record. Raises as decoding does."""
    line = _records.decode(text)
    told = line.payload
    memory.total = chain = _render_chain(told.thread_token_usage)
    return _build_plain(told.usage, told.response_id, chain, keep_moment(memory, line.timestamp), memory)


def refuse_plain(_text: bytes, _memory: ReaderState) -> None:
    """No line of other kinds is ordinary. Raises as decoding does."""
    raise msgspec.DecodeError


def find_repeat(text: bytes) -> bytes:
    """How a count begins that repeats the record `text` and is no news; empty where nobody can say."""
    _, _, rest = text.partition(_TOTAL)
    total, end, _ = rest.partition(b"}")
    return COUNT_HEAD + total + end if end and total.count(b"{") == 1 else b""


def read_plain_context(text: bytes, memory: ReaderState) -> None:
    """The model at work is known afterwards. Raises as decoding does."""
    line = _contexts.decode(text)
    keep_moment(memory, line.timestamp)
    memory.model = line.payload.model or memory.model


def read_plain_message(text: bytes, memory: ReaderState) -> PromptSent | None:
    """The prompt of an ordinary message; `None` where that is told elsewhere. Raises as decoding does."""
    line = _messages.decode(text)
    at = keep_moment(memory, line.timestamp)
    if at <= memory.replays_until or memory.has_items or memory.is_side:
        return None
    return PromptSent(line.payload.turn_id or f"{memory.session}/{at}", at, memory.session)


def _render_chain(total: _Counts) -> str:
    """The text `_chain` makes of the same counts."""
    chain: str = _CHAIN % astuple(total)
    return chain


def _build_plain(usage: _Counts, key: str, chain: str, at: int, memory: ReaderState) -> AnswerUsage | None:
    """The answer; `None` for one without tokens."""
    sent, cached, written, output, reasoning, _ = astuple(usage)
    new = max(0, sent - cached - written)
    if not (new or cached or written or output):
        return None
    return AnswerUsage(
        key, at, memory.session, memory.model, new, cached, written, output, reasoning, 0, chain
    )
