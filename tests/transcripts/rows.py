"""Builds transcript lines for tests, in the agents' own formats, and reads the sample files."""

import json
import os
from collections.abc import Mapping

from agent_relay.domain.facts import Facts
from agent_relay.transcripts.fact_readers import READERS
from agent_relay.transcripts.fact_reading import TranscriptSource

_SAMPLES = os.path.join(os.path.dirname(__file__), "samples")


def read_sample(name: str) -> bytes:
    """The bytes of a sample file."""
    with open(os.path.join(_SAMPLES, name), "rb") as file:
        return file.read()


def read_lines(reader: str, data: bytes) -> Facts:
    """The facts a reader finds in the bytes of one file named `t`."""
    return READERS[reader].read(TranscriptSource(place="t", lines=data.split(b"\n")))


def read_rollout(*records: Mapping[str, object]) -> Facts:
    """The facts of a Codex rollout of these lines."""
    return read_lines("codex-rollout", join_lines(*records))


def list_said(facts: Facts) -> list[tuple[str, int, str]]:
    """Who said what in which turn."""
    return [(one.role, one.turn, one.text) for one in facts.conversation]


def join_lines(*records: Mapping[str, object]) -> bytes:
    """The bytes of a JSON-lines file."""
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def join_compact(*records: Mapping[str, object]) -> bytes:
    """The same without a space between values, as the agents' own programs write."""
    return b"".join(json.dumps(record, separators=(",", ":")).encode() + b"\n" for record in records)


def codex_event(kind: str, **payload: object) -> dict[str, object]:
    """A line of a rollout that tells of an event."""
    return {"type": "event_msg", "timestamp": "2026-11-20T10:00:00Z", "payload": {"type": kind, **payload}}


def codex_item(kind: str, **item: object) -> dict[str, object]:
    """A line that tells of one finished item of a turn."""
    return codex_event("item_completed", item={"type": kind, **item})


def codex_wire(kind: str, **payload: object) -> dict[str, object]:
    """A line that repeats what went over the wire."""
    return {
        "type": "response_item",
        "timestamp": "2026-11-20T10:00:00Z",
        "payload": {"type": kind, **payload},
    }


def codex_message(role: str, text: str) -> dict[str, object]:
    """A message as it went over the wire."""
    return codex_wire("message", role=role, content=[{"type": "input_text", "text": text}])


class Claude:
    """A growing Claude session file: each row hangs on the one before unless told otherwise."""

    def __init__(self) -> None:
        self.records: list[dict[str, object]] = []
        self.last: str | None = None

    def add(self, kind: str, content: object, **fields: object) -> str:
        """Append a row of `kind` with message content; returns its uuid."""
        uuid = f"u{len(self.records)}"
        message: dict[str, object] = {"role": kind, "content": content}
        for key in ("id", "model", "stop_reason", "usage"):
            if key in fields:
                message[key] = fields.pop(key)
        record: dict[str, object] = {
            "type": kind,
            "uuid": uuid,
            "parentUuid": fields.pop("parent", self.last),
            "sessionId": "s1",
            "cwd": "/p",
            "timestamp": "2026-11-20T10:00:00.000Z",
            "message": message,
            **fields,
        }
        self.records.append(record)
        self.last = uuid
        return uuid

    def user(self, text: str, **fields: object) -> str:
        """Append a prompt."""
        return self.add("user", text, **fields)

    def agent(self, text: str, **fields: object) -> str:
        """Append an answer that ends its turn."""
        return self.add(
            "assistant", [{"type": "text", "text": text}], **{"stop_reason": "end_turn", **fields}
        )

    def call(self, name: str, number: str, **arguments: object) -> str:
        """Append a tool call."""
        part = {"type": "tool_use", "id": number, "name": name, "input": arguments}
        return self.add("assistant", [part], stop_reason="tool_use")

    def answer(self, number: str, text: str, *, error: bool = False, **fields: object) -> str:
        """Append a tool's result."""
        part = {"type": "tool_result", "tool_use_id": number, "content": text, "is_error": error}
        return self.add("user", [part], **fields)

    def raw(self, **record: object) -> None:
        """Append a record as it is."""
        self.records.append(record)

    def read(self) -> Facts:
        """The facts of the file so far."""
        return read_lines("claude-jsonl", join_lines(*self.records))
