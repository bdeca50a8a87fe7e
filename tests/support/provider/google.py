"""The Gemini wire and its Code Assist wrapping: a step as an event stream or as one object."""

import json
import uuid
from collections.abc import Iterator
from typing import Any

from tests.support.provider.anthropic import pieces
from tests.support.provider.steps import Step

Json = dict[str, Any]
USAGE: Json = {
    "promptTokenCount": 8000,
    "candidatesTokenCount": 60,
    "totalTokenCount": 8117,
    "cachedContentTokenCount": 4096,
    "thoughtsTokenCount": 57,
}
TIER: Json = {
    "id": "free-tier",
    "name": "Gemini Code Assist for individuals",
    "description": "Free tier",
    "userDefinedCloudaicompanionProject": False,
    "isDefault": True,
}
CODE_ASSIST: dict[str, Json] = {
    "loadCodeAssist": {
        "currentTier": TIER,
        "allowedTiers": [TIER],
        "cloudaicompanionProject": "scripted-project",
        "gcpManaged": False,
    },
    "onboardUser": {"name": "operations/scripted", "done": True, "response": {}},
    "retrieveUserQuota": {"buckets": []},
    "listExperiments": {"experimentIds": [], "flags": []},
}


def is_main(request: Json) -> bool:
    """Whether this request is the conversation: routers and summaries bring no functions."""
    return any("functionDeclarations" in tool for tool in request.get("tools") or [])


def get_side_text(request: Json) -> str:
    """What a router, a next-speaker check or a summary wants to hear."""
    wanted = request.get("generationConfig") or {}
    schema = json.dumps(wanted.get("responseJsonSchema") or wanted.get("responseSchema") or {})
    if "model_choice" in schema:
        return json.dumps({"reasoning": "scripted", "model_choice": "pro"})
    if "complexity_score" in schema:
        return json.dumps({"complexity_reasoning": "scripted", "complexity_score": 90})
    if "next_speaker" in schema:
        return json.dumps({"reasoning": "scripted", "next_speaker": "user"})
    return "A scripted title"


def build_parts(step: Step) -> list[Json]:
    """The tool calls of the answer as parts."""
    return [
        {
            "functionCall": {"name": tool["name"], "args": tool["input"], "id": uuid.uuid4().hex[:8]},
            "thoughtSignature": "RkFLRQ==",
        }
        for tool in step.get("tools", [])
    ]


def count_usage(step: Step) -> Json:
    """What the provider says it counted, prompt, thoughts and answer together."""
    held = step.get("held", 0)
    rest = USAGE["totalTokenCount"] - USAGE["promptTokenCount"]
    return {**USAGE, "promptTokenCount": held - rest, "totalTokenCount": held} if held else USAGE


def build_chunk(parts: list[Json], usage: Json, *, model: str, wrapped: bool, finish: str = "") -> Json:
    """One chunk of an answer; `wrapped` as Code Assist sends it."""
    candidate: Json = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    chunk: Json = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}
    return {"response": chunk, "traceId": "scripted"} if wrapped else chunk


def build_whole(model: str, step: Step, *, wrapped: bool) -> Json:
    """The answer as one object."""
    said = [{"text": step["say"]}] if step.get("say") else []
    return build_chunk(
        said + build_parts(step), count_usage(step), model=model, wrapped=wrapped, finish="STOP"
    )


def render_stream(model: str, step: Step, *, wrapped: bool) -> Iterator[bytes]:
    """The answer as an event stream."""
    parts = [[{"text": piece}] for piece in pieces(step["say"])] if step.get("say") else []
    calls = build_parts(step)
    for part in [*parts, *([calls] if calls else [])]:
        yield render_event(build_chunk(part, count_usage(step), model=model, wrapped=wrapped))
    yield render_event(
        build_chunk([{"text": ""}], count_usage(step), model=model, wrapped=wrapped, finish="STOP")
    )


def render_event(data: Json) -> bytes:
    """One server-sent event."""
    return f"data: {json.dumps(data, ensure_ascii=False)}\r\n\r\n".encode()
