"""Codex's ordinary answers, nearly all there are: one decoding into a shape of its own for each.

Whatever is odd about a line is refused here, and read as any line by `codex`, which says the same of these.
"""

from typing import Annotated, Literal

import msgspec

from agent_relay.logic.transcripts.usage.marks import MOST_TOKENS, Memory, Used, note_moment

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
    timestamp: str
    payload: _Told


class _Response(msgspec.Struct, gc=False):
    response_id: str
    usage: _Counts
    thread_token_usage: _Counts


class _RecordLine(msgspec.Struct, gc=False):
    type: Literal["token_usage_record"]
    timestamp: str
    payload: _Response


_counts = msgspec.json.Decoder(_CountLine)
_records = msgspec.json.Decoder(_RecordLine)
_NOTHING = Used("", 0, "")


def read_plain_count(text: bytes, memory: Memory) -> Used:
    """The answer of an ordinary count, without tokens where it was told before. Raises as decoding does."""
    line = _counts.decode(text)
    info, at = line.payload.info, note_moment(memory, line.timestamp)
    chain = _render_chain(info.total_token_usage)
    if chain == memory.total:
        return _NOTHING
    memory.total = chain
    return _build_plain(info.last_token_usage, "", chain, at, memory)


def read_plain_record(text: bytes, memory: Memory) -> Used:
    """The answer of an ordinary record. Raises as decoding does."""
    line = _records.decode(text)
    told = line.payload
    memory.total = chain = _render_chain(told.thread_token_usage)
    return _build_plain(told.usage, told.response_id, chain, note_moment(memory, line.timestamp), memory)


def _render_chain(total: _Counts) -> str:
    """The text `_chain` makes of the same counts."""
    return (
        f"{total.input_tokens}/{total.cached_input_tokens}/{total.cache_write_input_tokens}/"
        f"{total.output_tokens}/{total.reasoning_output_tokens}/{total.total_tokens}"
    )


def _build_plain(usage: _Counts, key: str, chain: str, at: int, memory: Memory) -> Used:
    cached, written = usage.cached_input_tokens, usage.cache_write_input_tokens
    return Used(
        key,
        at,
        memory.session,
        memory.model,
        max(0, usage.input_tokens - cached - written),
        cached,
        written,
        usage.output_tokens,
        usage.reasoning_output_tokens,
        0,
        chain,
    )
