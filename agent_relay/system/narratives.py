"""The handoff document an agent wrote, kept in its session's folder until a packet takes it along."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import read_bounded, write_atomic

_NAME = "narrative.json"
_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Kept:
    """A document without secrets, and the leg whose agent wrote it; `at` is ISO 8601."""

    leg: str
    agent: str
    at: str
    focus: str
    text: str


def write_narrative(folder: str, kept: Kept) -> None:
    """The session's document is this one. Raises RelayError, and then an older one is untouched."""
    write_atomic(os.path.join(folder, _NAME), json.dumps(asdict(kept), ensure_ascii=False).encode())


def read_narrative(folder: str, leg: str) -> str:
    """What the agent of `leg` wrote, with when it did; empty where it wrote nothing that can be read."""
    try:
        found = json.loads(read_bounded(os.path.join(folder, _NAME), limit_bytes=_LIMIT_BYTES))
    except (RelayError, FileNotFoundError, ValueError, RecursionError):
        return ""
    if not isinstance(found, dict) or found.get("leg") != leg:
        return ""
    text, at = found.get("text"), found.get("at")
    if not isinstance(text, str) or not isinstance(at, str):
        return ""
    return f"(written {at})\n\n{text}"


def save_beside_packets(folder: str, text: str, at: datetime) -> str:
    """The path of the document as a file of its own in the session's `folder`. Raises RelayError."""
    path = os.path.join(folder, "resume", f"handoff-{at:%Y%m%dT%H%M%SZ}.md")
    write_atomic(path, f"{text}\n".encode(), durable=False)
    return path
