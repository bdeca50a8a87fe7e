"""Read usage from Codex's rollouts (measured on 0.169.0; older ones as public reports show them).

Two records describe one answer: `token_usage_record`, which names the response, and the event
`token_count`, which is repeated with unchanged totals. A fork continues its parent's totals, and older
versions copied the parent's records into it with new times; therefore the total after an answer
identifies it, too.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent_relay.transcripts._diff_counts import count_lines, count_unified
from agent_relay.transcripts.lenient_json import LINE_BYTES, decode_mended, get_map, get_text
from agent_relay.transcripts.usage._codex_common_lines import (
    COUNT_HEAD,
    find_repeat,
    read_plain_context,
    read_plain_count,
    read_plain_message,
    read_plain_record,
    refuse_plain,
)
from agent_relay.transcripts.usage.line_spans import ByteBlock
from agent_relay.transcripts.usage.records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    get_tokens,
    note_moment,
)

# The line's and the payload's types stand first, behind the time and the ordinal.
_HEAD = 300
_TYPE = b'"type":"'
# The first nine letters of the lines and the events that are read.
_EVENT, _ITEM, _COUNT, _RECORD = b"event_msg", b"item_comp", b"token_cou", b"token_usa"
_TOLD = frozenset({b"session_m", b"turn_cont", _RECORD})
_EVENTS = frozenset({_COUNT, _ITEM, b"task_comp", b"turn_comp", b"user_mess"})
# One that is looked into whole, and one that is not read.
_WHOLE, _UNTOLD = b"", b"-"
# How the types of a line are written where nothing stands between them, and those of most that are not read.
_BETWEEN = b'","payload":{'
_USUAL_BYTES = len(_TYPE + _EVENT + _BETWEEN + _TYPE + _COUNT)
_ITEMS = (b'message"', b"function_call", b'reasoning"', b"custom_tool_call")
_USUAL = {_TYPE + _EVENT + _BETWEEN + _TYPE + kind: kind for kind in _EVENTS} | {
    (_TYPE + b"response_item" + _BETWEEN + _TYPE + item)[:_USUAL_BYTES]: _UNTOLD for item in _ITEMS
}
_SECOND = len(_TYPE + _EVENT + _BETWEEN)
_PROMPT_TYPE, _CHANGE_TYPE = b'"type":"UserMessage"', b'"type":"FileChange"'
# How most finished items begin, and what stands there then for those that are read.
_ITEM_HEAD = b'"item":{"type":"'
_ITEM_KINDS = (b'UserMessage"', b'FileChange"')
_ITEM_BYTES = len(_ITEM_HEAD)
_KIND_BYTES = max(map(len, _ITEM_KINDS))
_PLAIN: Mapping[bytes, Callable[[bytes, ReaderState], UsageRecord | None]] = {
    _COUNT: read_plain_count,
    _RECORD: read_plain_record,
    b"turn_cont": read_plain_context,
    b"user_mess": read_plain_message,
}
# How a count of which there is news all the same cannot begin, and how a whole one ends.
_NOTHING, _END = b"\n", b"}}"
_COUNTS = (
    "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
    "reasoning_output_tokens", "total_tokens",
)  # fmt: skip
# Copied records are dated when the fork was made, within the moment it takes to write them.
_REPLAY_MS = 1000


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: dict[str, object] | None = None


_lines = msgspec.json.Decoder(_Line)


def read_codex_usage(data: ByteBlock, memory: ReaderState) -> list[UsageRecord]:
    """Return the usage records of whole lines; `memory` carries the state from line to line."""
    find, usual, size, place, end = data.find, _USUAL.get, len(data), 0, -1
    marks, told = list[UsageRecord](), _NOTHING
    # As `iterate_spans` does: to ask that for each line is as dear as all that is done with most of them.
    while (start := end + 1) < size:
        end = find(b"\n", start, size)
        if end < 0:
            end = size
        # Most types stand where the line's before did, and are told apart by a slice and a look at once.
        at = start + place
        kind = usual(data[at : at + _USUAL_BYTES]) if at < end else None
        if kind is None:
            at = find(_TYPE, start, start + _HEAD)
            place = max(0, at - start)
            kind, at = _find_kind(data, at, start + _HEAD, end)
        else:
            at += _SECOND
        if kind == _UNTOLD or (kind == _ITEM and not _is_read(data, at)):
            continue
        # Most counts are sent twice or repeat a record, with nothing but another time.
        is_told = kind == _COUNT and data[at : at + len(told)] == told and data[end - 2 : end] == _END
        if is_told or not 0 < end - start <= LINE_BYTES:
            continue
        text = data[start:end]
        try:
            mark = _PLAIN.get(kind, refuse_plain)(text, memory)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            marks += _read_odd(text, memory)
            told = _NOTHING
            continue
        if mark is not None:
            marks.append(mark)
        if kind == _COUNT:
            told = text[at - start :] if text.startswith(COUNT_HEAD, at - start) else _NOTHING
        elif kind == _RECORD:
            told = find_repeat(text) or _NOTHING
    return marks


def _find_kind(data: ByteBlock, at: int, near: int, end: int) -> tuple[bytes, int]:
    """Return the kind of a line, and the offset of the type that decides it.

    The first type is at `at`, that of an event's payload before `near`. The kind of a line without types
    there is empty: it is decoded whole.
    """
    kind, told = data[at + 8 : at + 17], _TOLD
    if kind == _EVENT and 0 <= at < end:
        at = data.find(_TYPE, at + 8, near)
        kind, told = data[at + 8 : at + 17], _EVENTS
    if not 0 <= at < end:
        return _WHOLE, at
    return kind if kind in told else _UNTOLD, at


def _is_read(data: ByteBlock, at: int) -> bool:
    """Check whether the finished item whose type is at `at` may be one of those that are read."""
    near = at + _HEAD
    place = data.find(_ITEM_HEAD, at, near)
    if place >= 0:
        place += _ITEM_BYTES
        return data[place : place + _KIND_BYTES].startswith(_ITEM_KINDS)
    return data.find(_PROMPT_TYPE, at, near) >= 0 or data.find(_CHANGE_TYPE, at, near) >= 0


def _read_odd(text: bytes, memory: ReaderState) -> Iterable[UsageRecord]:
    """Read the usage records of a line of any form; one that cannot be read is counted."""
    try:
        line = decode_mended(text, _lines.decode)
    except (msgspec.DecodeError, RecursionError):
        memory.skipped += 1
        return ()
    return _read_line(line.type, line.payload or {}, note_moment(memory, line.timestamp), memory)


def _read_line(
    kind: str, payload: Mapping[str, object], at: int, memory: ReaderState
) -> Iterator[UsageRecord]:
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


def _read_meta(payload: Mapping[str, object], at: int, memory: ReaderState) -> Iterator[UsageRecord]:
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
    yield SessionOpened(memory.session, get_text(payload, "cwd"), memory.parent, memory.is_side)


def _read_event(payload: Mapping[str, object], at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    kind = get_text(payload, "type")
    if kind == "token_count":
        yield from _read_count(get_map(payload, "info"), at, memory)
        return
    if at <= memory.replays_until:
        return
    turn = get_text(payload, "turn_id") or f"{memory.session}/{at}"
    if kind in ("task_complete", "turn_complete"):
        if get_map(payload, "error"):
            yield TurnFailed(turn, at, memory.session)
        return
    item = get_map(payload, "item")
    match get_text(item, "type"):
        case "UserMessage":
            memory.has_items = True
            yield from _prompt(get_text(item, "id") or turn, at, memory)
        case "FileChange" if item.get("status") not in ("failed", "declined"):
            added, removed = _count_changes(get_map(item, "changes"))
            yield LinesChanged(get_text(item, "id") or f"{turn}/{at}", at, memory.session, added, removed)
        case "" if kind == "user_message" and not memory.has_items:
            yield from _prompt(turn, at, memory)
        case _:
            pass


def _prompt(key: str, at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    if not memory.is_side:
        yield PromptSent(key, at, memory.session)


def _read_count(info: Mapping[str, object], at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the answer that a `token_count` describes, unless its total is the last one seen."""
    total = get_map(info, "total_token_usage")
    chain = _chain(total)
    if not total or chain == memory.total:
        return
    last, before, memory.total = get_map(info, "last_token_usage"), memory.total, chain
    if last or before or not memory.parent:
        yield from _build_used(last or _subtract(total, before), "", chain, at, memory)


def _chain(total: Mapping[str, object]) -> str:
    return "/".join([str(get_tokens(total, name)) for name in _COUNTS]) if total else ""


def _subtract(total: Mapping[str, object], before: str) -> Mapping[str, object]:
    """Return the counts since the total `before`, for versions that record totals alone.

    If a count is lower than before, the totals started anew, and all of them are returned.
    """
    last = [int(count) for count in before.split("/")] if before else [0] * len(_COUNTS)
    now = [get_tokens(total, name) for name in _COUNTS]
    grown = [count - known for count, known in zip(now, last, strict=True)]
    return dict(zip(_COUNTS, now if min(grown) < 0 else grown, strict=True))


def _build_used(
    usage: Mapping[str, object], key: str, chain: str, at: int, memory: ReaderState
) -> Iterator[UsageRecord]:
    """Yield the answer, unless it used no tokens.

    The input count includes cached and cache-written tokens, the output count the reasoning.
    """
    cached, written = get_tokens(usage, "cached_input_tokens"), get_tokens(usage, "cache_write_input_tokens")
    used = AnswerUsage(
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
