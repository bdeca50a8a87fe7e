"""Usage in Codex's rollouts (measured on 0.169.0; older ones as public reports show them).

Two records tell of one answer: `token_usage_record`, which names the response, and the event `token_count`,
which is repeated with unchanged totals. A fork goes on from its parent's totals, and older versions copied
the parent's records into it with new times, so that an answer is known by the total after it, too.
"""

from collections.abc import Iterator, Mapping

import msgspec

from agent_relay.logic.transcripts.diffs import count_lines, count_unified
from agent_relay.logic.transcripts.lines import decode_mended, decode_raw, get_map, get_text
from agent_relay.logic.transcripts.usage.marks import (
    Changed,
    Failed,
    Mark,
    Memory,
    Opened,
    Prompted,
    Used,
    get_tokens,
    note_moment,
)
from agent_relay.logic.transcripts.usage.spans import Span, iterate_spans

# The line's and the payload's types stand first, behind the time and the ordinal.
_HEAD = 300
_TYPE = b'"type":"'
_TOLD = frozenset({b"session_meta", b"turn_context", b"token_usage_record"})
_EVENTS = frozenset({b"token_count", b"task_complete", b"turn_complete", b"item_completed", b"user_message"})
_ITEMS = (b'"type":"UserMessage"', b'"type":"FileChange"')
# Copied records are dated when the fork was made, within the moment it takes to write them.
_REPLAY_MS = 1000
_TOTALS = ("input_tokens", "cached_input_tokens", "output_tokens", "total_tokens")


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


_lines = msgspec.json.Decoder(_Line)


def read_codex_usage(data: bytes, memory: Memory) -> Iterator[Mark]:
    """The marks of whole lines; `memory` goes on from line to line."""
    for span in iterate_spans(data):
        if not _may_tell(data, span):
            continue
        try:
            line = decode_mended(data[span[0] : span[1]], _lines.decode)
        except (msgspec.DecodeError, RecursionError):
            memory.skipped += 1
            continue
        payload = get_map(decode_raw(line.payload))
        yield from _read_line(line.type, payload, note_moment(memory, line.timestamp), memory)


def _may_tell(data: bytes, span: Span) -> bool:
    start, end = span
    near = min(end, start + _HEAD)
    kind, after = _find_type(data, start, near)
    if kind in _TOLD:
        return True
    if kind == b"event_msg":
        name, after = _find_type(data, after, near)
        if name == b"item_completed":
            return any(data.find(item, after, after + _HEAD) >= 0 for item in _ITEMS)
        return name in _EVENTS
    return not kind


def _find_type(data: bytes, start: int, end: int) -> tuple[bytes, int]:
    """The first value of a `type` between `start` and `end`, and where it ends; empty where there is none."""
    begin = data.find(_TYPE, start, end) + len(_TYPE)
    close = data.find(b'"', begin, end) if begin >= len(_TYPE) else -1
    return (data[begin:close], close) if close >= 0 else (b"", end)


def _read_line(kind: str, payload: Mapping[str, object], at: int, memory: Memory) -> Iterator[Mark]:
    match kind:
        case "session_meta":
            yield from _read_meta(payload, at, memory)
        case "turn_context":
            memory.model = get_text(payload, "model") or memory.model
        case "token_usage_record":
            chain = _chain(get_map(payload, "thread_token_usage"))
            memory.total = chain
            key = get_text(payload, "response_id")
            yield from _build_used(get_map(payload, "usage"), key, chain, at, memory)
        case "event_msg":
            yield from _read_event(payload, at, memory)
        case _:
            pass


def _read_meta(payload: Mapping[str, object], at: int, memory: Memory) -> Iterator[Mark]:
    if memory.is_told:
        # A second one is the parent's, copied with everything after it.
        memory.replays_until = at + _REPLAY_MS
        return
    source = get_map(payload, "source")
    spawned = get_map(source, "subagent", "thread_spawn")
    memory.is_told = True
    memory.session = get_text(payload, "id")
    memory.is_side = bool(source)
    memory.parent = get_text(payload, "forked_from_id") or get_text(spawned, "parent_thread_id")
    yield Opened(memory.session, get_text(payload, "cwd"), memory.parent, memory.is_side)


def _read_event(payload: Mapping[str, object], at: int, memory: Memory) -> Iterator[Mark]:
    kind = get_text(payload, "type")
    if kind == "token_count":
        yield from _read_count(get_map(payload, "info"), at, memory)
        return
    if at <= memory.replays_until:
        return
    turn = get_text(payload, "turn_id") or f"{memory.session}/{at}"
    if kind in ("task_complete", "turn_complete"):
        if get_map(payload, "error"):
            yield Failed(turn, at, memory.session)
        return
    item = get_map(payload, "item")
    match get_text(item, "type"):
        case "UserMessage":
            memory.has_items = True
            yield from _prompt(get_text(item, "id") or turn, at, memory)
        case "FileChange" if item.get("status") not in ("failed", "declined"):
            added, removed = _count_changes(get_map(item, "changes"))
            yield Changed(get_text(item, "id") or f"{turn}/{at}", at, memory.session, added, removed)
        case "" if kind == "user_message" and not memory.has_items:
            yield from _prompt(turn, at, memory)
        case _:
            pass


def _prompt(key: str, at: int, memory: Memory) -> Iterator[Mark]:
    if not memory.is_side:
        yield Prompted(key, at, memory.session)


def _read_count(info: Mapping[str, object], at: int, memory: Memory) -> Iterator[Mark]:
    """The answer a `token_count` tells of; none where its total was told before."""
    total = get_map(info, "total_token_usage")
    chain = _chain(total)
    if not total or chain == memory.total:
        return
    last, memory.total = get_map(info, "last_token_usage"), chain
    yield from _build_used(last, "", chain, at, memory)


def _chain(total: Mapping[str, object]) -> str:
    return "/".join(str(get_tokens(total, name)) for name in _TOTALS) if total else ""


def _build_used(usage: Mapping[str, object], key: str, chain: str, at: int, memory: Memory) -> Iterator[Mark]:
    """The input count includes what was cached and cache-written, the output count the reasoning."""
    cached, written = get_tokens(usage, "cached_input_tokens"), get_tokens(usage, "cache_write_input_tokens")
    used = Used(
        key=key,
        at=at,
        session=memory.session,
        model=memory.model,
        input=max(0, get_tokens(usage, "input_tokens") - cached - written),
        cached=cached,
        cache_write=written,
        output=get_tokens(usage, "output_tokens"),
        reasoning=get_tokens(usage, "reasoning_output_tokens"),
        chain=chain,
    )
    if used.tokens:
        yield used


def _count_changes(changes: Mapping[str, object]) -> tuple[int, int]:
    added = removed = 0
    for change in changes.values():
        match get_text(change, "type"):
            case "add":
                added += count_lines(get_text(change, "content"))
            case "delete":
                removed += count_lines(get_text(change, "content"))
            case _:
                more, less = count_unified(get_text(change, "unified_diff"))
                added, removed = added + more, removed + less
    return added, removed
