"""Read usage from Codex's rollouts (measured on 0.169.0; older ones as public reports show them)."""

from collections.abc import Iterator, Mapping

import msgspec
from msgspec.structs import asdict

from agent_relay.transcripts.lenient_json import count_lines, count_unified, get_map, get_text
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

TURN_ENDS = ("task_complete", "turn_complete")
"""The events that end a turn, with the turn's `error` if there was one; the first is of older versions."""
TURN_STARTS = ("task_started", "turn_started")
COUNT_NAMES = (
    "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
    "reasoning_output_tokens", "total_tokens",
)  # fmt: skip
"""The names of the counts in `usage`, `total_token_usage` and `last_token_usage`."""


def parse_tokens(usage: Mapping[str, object]) -> TokenCounts:
    """Convert Codex's token counts.

    Its input count includes cached and cache-written tokens, its output count the reasoning.
    """
    cached, written = get_tokens(usage, "cached_input_tokens"), get_tokens(usage, "cache_write_input_tokens")
    return TokenCounts(
        input=max(0, get_tokens(usage, "input_tokens") - cached - written),
        cached=cached,
        cache_write=written,
        output=get_tokens(usage, "output_tokens"),
        reasoning=get_tokens(usage, "reasoning_output_tokens"),
    )


def is_subagent(meta: Mapping[str, object]) -> bool:
    """Check whether the thread works for another: its `source` is an object; people's are words."""
    return isinstance(meta.get("source"), dict)


def find_parent(meta: Mapping[str, object]) -> str:
    """Return the thread that this one was forked from or works for; empty for neither."""
    spawned = get_map(meta, "source", "subagent", "thread_spawn")
    return get_text(meta, "forked_from_id") or get_text(spawned, "parent_thread_id")


def is_refused(item: Mapping[str, object]) -> bool:
    """Check whether the item is a change of files that failed or that the user declined."""
    return item.get("status") in ("failed", "declined")


def count_change(change: object) -> tuple[int, int]:
    """Count added and removed lines of one file's change in an item `FileChange`."""
    match get_text(change, "type"):
        case "add":
            return count_lines(get_text(change, "content")), 0
        case "delete":
            return 0, count_lines(get_text(change, "content"))
        case _:
            return count_unified(get_text(change, "unified_diff"))


# Copied records are dated when the fork was made, within the moment it takes to write them.
_REPLAY_MS = 1000


class _Item(msgspec.Struct):
    type: object = None
    id: object = None
    status: object = None
    changes: object = None


class _Payload(msgspec.Struct):
    """Fields of any payload that tell of usage; nothing else is decoded, least of all what tools printed."""

    type: object = None
    id: object = None
    cwd: object = None
    source: object = None
    forked_from_id: object = None
    model: object = None
    response_id: object = None
    usage: object = None
    thread_token_usage: object = None
    info: object = None
    turn_id: object = None
    error: object = None
    item: _Item | None = None


class _Line(msgspec.Struct):
    type: str = ""
    timestamp: str | None = None
    payload: _Payload | None = None


_lines = msgspec.json.Decoder(_Line)


def read_codex_usage(data: bytes, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for line in decode_lines(data, _lines, memory):
        payload = line.payload
        if line.type == "response_item" or payload is None:
            continue
        at = note_moment(memory, line.timestamp)
        match line.type:
            case "session_meta":
                yield from _read_meta(asdict(payload), at, memory)
            case "turn_context" if isinstance(payload.model, str):
                memory.model = payload.model or memory.model
            case "token_usage_record":
                memory.total = chain = _render_chain(get_map(payload.thread_token_usage))
                key = payload.response_id if isinstance(payload.response_id, str) else ""
                yield from _build_used(get_map(payload.usage), key, chain, at, memory)
            case "event_msg" if payload.type == "token_count":
                yield from _read_count(get_map(payload.info), at, memory)
            case "event_msg" if at > memory.replays_until:
                yield from _read_event(asdict(payload), payload.item, at, memory)
            case _:
                pass


def _read_meta(meta: Mapping[str, object], at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    if memory.is_told:
        # A second one is the parent's, copied with everything after it.
        memory.replays_until = at + _REPLAY_MS
        return
    memory.is_told = True
    memory.session, memory.parent = get_text(meta, "id"), find_parent(meta)
    memory.is_side = is_subagent(meta)
    yield SessionOpened(memory.session, get_text(meta, "cwd"), memory.parent, memory.is_side)


def _read_event(
    payload: Mapping[str, object], item: _Item | None, at: int, memory: ReaderState
) -> Iterator[UsageRecord]:
    kind, turn = get_text(payload, "type"), get_text(payload, "turn_id") or f"{memory.session}/{at}"
    if kind in TURN_ENDS:
        if get_map(payload, "error"):
            yield TurnFailed(turn, at, memory.session)
    elif item is not None:
        yield from _read_item(asdict(item), turn, at, memory)
    elif kind == "user_message" and not memory.has_items and not memory.is_side:
        yield PromptSent(turn, at, memory.session)


def _read_item(item: Mapping[str, object], turn: str, at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    match item["type"]:
        case "UserMessage":
            memory.has_items = True
            if not memory.is_side:
                yield PromptSent(get_text(item, "id") or turn, at, memory.session)
        case "FileChange" if not is_refused(item):
            counts = [count_change(change) for change in get_map(item, "changes").values()]
            added, removed = sum(more for more, _ in counts), sum(less for _, less in counts)
            yield LinesChanged(get_text(item, "id") or f"{turn}/{at}", at, memory.session, added, removed)
        case _:
            pass


def _read_count(info: Mapping[str, object], at: int, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the answer that a `token_count` describes, unless its total is the last one seen."""
    total = get_map(info, "total_token_usage")
    chain = _render_chain(total)
    if not total or chain == memory.total:
        return
    last, before, memory.total = get_map(info, "last_token_usage"), memory.total, chain
    if last or before or not memory.parent:
        yield from _build_used(last or _subtract(total, before), "", chain, at, memory)


def _render_chain(total: Mapping[str, object]) -> str:
    return "/".join([str(get_tokens(total, name)) for name in COUNT_NAMES]) if total else ""


def _subtract(total: Mapping[str, object], before: str) -> Mapping[str, object]:
    """Return the counts since the total `before`, for versions that record totals alone.

    If a count is lower than before, the totals started anew, and all of them are returned.
    """
    last = [int(count) for count in before.split("/")] if before else [0] * len(COUNT_NAMES)
    now = [get_tokens(total, name) for name in COUNT_NAMES]
    grown = [count - known for count, known in zip(now, last, strict=True)]
    return dict(zip(COUNT_NAMES, now if min(grown) < 0 else grown, strict=True))


def _build_used(
    usage: Mapping[str, object], key: str, chain: str, at: int, memory: ReaderState
) -> Iterator[UsageRecord]:
    """Yield the answer, unless it used no tokens."""
    used = AnswerUsage(key, at, memory.session, memory.model, *parse_tokens(usage), chain)
    if used.tokens:
        yield used
