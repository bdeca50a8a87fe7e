"""The Anthropic messages wire: a step as an event stream or as one object."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.provider.steps import Step

Json = dict[str, Any]
PIECE = 40  # characters a delta; small enough that a sentence arrives in several

USAGE: Json = {
    "input_tokens": 1200,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 15000,
    "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 42,
    "service_tier": "standard",
}


def count_usage(step: Step) -> Json:
    """What the provider says it counted; what a conversation holds is mostly cached."""
    held = step.get("held", 0)
    known = USAGE["input_tokens"] + USAGE["cache_creation_input_tokens"]
    return {**USAGE, "cache_read_input_tokens": held - known} if held else USAGE


def is_main(request: Json) -> bool:
    """Whether this request is the conversation: titles and quota probes carry no real tools."""
    return request.get("max_tokens") != 1 and len(request.get("tools") or []) > 2


def pieces(text: str) -> list[str]:
    """`text` cut into deltas; at least one."""
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)] or [""]


def build_blocks(step: Step) -> list[Json]:
    """The content blocks of the answer."""
    blocks: list[Json] = [{"type": "text", "text": step["say"]}] if step.get("say") else []
    for tool in step.get("tools", []):
        key = "toolu_01" + uuid.uuid4().hex[:20]
        blocks.append({"type": "tool_use", "id": key, "name": tool["name"], "input": tool["input"]})
    return blocks


def build_whole(request: Json, step: Step) -> Json:
    """The answer as one object."""
    return {
        "id": "msg_01" + uuid.uuid4().hex[:20],
        "type": "message",
        "role": "assistant",
        "model": request.get("model", ""),
        "content": build_blocks(step),
        "stop_reason": "tool_use" if step.get("tools") else "end_turn",
        "stop_sequence": None,
        "usage": count_usage(step),
    }


def render_event(data: Json) -> bytes:
    """One server-sent event."""
    return f"event: {data['type']}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def render_block(index: int, block: Json) -> Iterator[bytes]:
    """The events of one content block."""
    if block["type"] == "text":
        empty: Json = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    else:
        empty = {**block, "input": {}}
        whole = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(whole)]
    yield render_event({"type": "content_block_start", "index": index, "content_block": empty})
    for delta in deltas:
        yield render_event({"type": "content_block_delta", "index": index, "delta": delta})
    yield render_event({"type": "content_block_stop", "index": index})


def render_stream(request: Json, step: Step) -> Iterator[bytes]:
    """The answer as an event stream."""
    whole = build_whole(request, step)
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**whole["usage"], "output_tokens": 1}}
    yield render_event({"type": "message_start", "message": begun})
    for index, block in enumerate(whole["content"]):
        yield from render_block(index, block)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield render_event({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 42}})
    yield render_event({"type": "message_stop"})
