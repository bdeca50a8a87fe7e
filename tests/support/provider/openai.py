"""The two OpenAI wires, responses and chat completions: a step as an event stream or as one object."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.provider.anthropic import pieces
from tests.support.provider.steps import Step, Tool

Json = dict[str, Any]
USAGE: Json = {
    "input_tokens": 9000,
    "input_tokens_details": {"cached_tokens": 7000},
    "output_tokens": 120,
    "output_tokens_details": {"reasoning_tokens": 64},
    "total_tokens": 9120,
}
CHAT_USAGE: Json = {"prompt_tokens": 9000, "completion_tokens": 120, "total_tokens": 9120}


def count_usage(step: Step) -> Json:
    """What the provider says it counted, on the responses wire."""
    held = step.get("held", 0)
    return {**USAGE, "input_tokens": held - USAGE["output_tokens"], "total_tokens": held} if held else USAGE


def count_chat_usage(step: Step) -> Json:
    """The same on the chat wire."""
    held = step.get("held", 0)
    prompt = held - CHAT_USAGE["completion_tokens"]
    return {**CHAT_USAGE, "prompt_tokens": prompt, "total_tokens": held} if held else CHAT_USAGE


def is_main(request: Json) -> bool:
    """Whether this request is the conversation: title threads ask for a schema or bring no tools."""
    wants_schema = bool((request.get("text") or {}).get("format")) or bool(request.get("response_format"))
    return bool(request.get("tools")) and not wants_schema


def build_call(tool: Tool) -> Json:
    """One tool call as an item of the responses wire."""
    call_id = "call_" + uuid.uuid4().hex[:16]
    if tool.get("custom"):
        kind: Json = {
            "type": "custom_tool_call",
            "id": "ctc_" + uuid.uuid4().hex[:12],
            "input": tool["input"],
        }
    elif tool["name"] == "tool_search":
        # Its client looks for tools that were not listed, and may be called from then on.
        kind = {"type": "tool_search_call", "execution": "client", "arguments": tool["input"]}
        return {**kind, "call_id": call_id, "status": "completed"}
    else:
        arguments = json.dumps(tool["input"])
        kind = {"type": "function_call", "id": "fc_" + uuid.uuid4().hex[:12], "arguments": arguments}
    # A server's tools are called by its namespace, and not listed before the model has searched for them.
    space, _, name = tool["name"].rpartition("/")
    within = {"namespace": space} if space else {}
    return {**kind, **within, "call_id": call_id, "name": name, "status": "completed"}


def build_message(text: str) -> Json:
    """What the model says as an item of the responses wire."""
    content = [{"type": "output_text", "text": text, "annotations": []}]
    key = "msg_" + uuid.uuid4().hex[:12]
    return {"type": "message", "id": key, "role": "assistant", "status": "completed", "content": content}


def build_events(request: Json, step: Step) -> Iterator[Json]:
    """The events of a responses answer, without their sequence numbers."""
    base: Json = {
        "id": "resp_" + uuid.uuid4().hex[:20],
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "model": request.get("model", ""),
        "output": [],
    }
    yield {"type": "response.created", "response": base}
    items: list[Json] = []
    if step.get("say"):
        item = build_message(step["say"])
        place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
        begun = {**item, "status": "in_progress", "content": []}
        yield {"type": "response.output_item.added", "output_index": 0, "item": begun}
        for piece in pieces(step["say"]):
            yield {"type": "response.output_text.delta", **place, "delta": piece}
        yield {"type": "response.output_text.done", **place, "text": step["say"]}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        items.append(item)
    for tool in step.get("tools", []):
        item = build_call(tool)
        yield {"type": "response.output_item.added", "output_index": len(items), "item": item}
        yield {"type": "response.output_item.done", "output_index": len(items), "item": item}
        items.append(item)
    done = {**base, "status": "completed", "output": items, "usage": count_usage(step)}
    yield {"type": "response.completed", "response": done}


def render_responses(request: Json, step: Step) -> Iterator[bytes]:
    """A responses answer as an event stream."""
    for number, event in enumerate(build_events(request, step)):
        data = json.dumps({**event, "sequence_number": number}, ensure_ascii=False)
        yield f"event: {event['type']}\ndata: {data}\n\n".encode()


def build_responses(request: Json, step: Step) -> Json:
    """A responses answer as one object."""
    whole: Json = list(build_events(request, step))[-1]["response"]
    return whole


def build_chat_calls(step: Step) -> list[Json]:
    """The tool calls of a chat answer."""
    return [
        {
            "index": index,
            "id": "call_" + uuid.uuid4().hex[:12],
            "type": "function",
            "function": {"name": tool["name"], "arguments": json.dumps(tool["input"])},
        }
        for index, tool in enumerate(step.get("tools", []))
    ]


def build_chat(request: Json, step: Step) -> Json:
    """A chat answer as one object."""
    message: Json = {"role": "assistant", "content": step.get("say") or None}
    calls = build_chat_calls(step)
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    return {
        **chat_head(request),
        "object": "chat.completion",
        "choices": [choice],
        "usage": count_chat_usage(step),
    }


def chat_head(request: Json) -> Json:
    """What every chunk of one chat answer repeats."""
    key = "chatcmpl-" + uuid.uuid4().hex[:20]
    return {"id": key, "created": int(time.time()), "model": request.get("model", "")}


def render_chat(request: Json, step: Step) -> Iterator[bytes]:
    """A chat answer as an event stream."""
    head = {**chat_head(request), "object": "chat.completion.chunk"}
    calls = build_chat_calls(step)
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    if step.get("say"):
        deltas += [{"content": piece} for piece in pieces(step["say"])]
    if calls:
        deltas.append({"tool_calls": calls})
    for delta in deltas:
        yield render_chunk({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    last = {"index": 0, "delta": {}, "finish_reason": "tool_calls" if calls else "stop"}
    yield render_chunk({**head, "choices": [last], "usage": count_chat_usage(step)})
    yield b"data: [DONE]\n\n"


def render_chunk(data: Json) -> bytes:
    """One chunk of a chat stream."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n".encode()
