"""Files of agents' own records for tests of usage: written, and read by way of an index."""

import json
from pathlib import Path

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.usage.native_usage import UsageRead, read_usage

LINES = Transcript(
    reader="claude-jsonl", folder="{home}/p", pattern="*/*.jsonl", usage=("{home}/p/**/*.jsonl",)
)
TABLES = Transcript(reader="opencode-db", folder="{home}/o", pattern="opencode*.db")


def answer(key: str, output: int = 1, *, text: str = "", **more: str) -> bytes:
    """A line that tells of one answer."""
    message = {"id": key, "model": "m", "content": [{"text": text}], "usage": {"output_tokens": output}}
    row = {"sessionId": "s1", "message": message, "type": "assistant", "timestamp": "2026-11-20T10:00:00Z"}
    return json.dumps(row | more, separators=(",", ":")).encode() + b"\n"


def write(path: Path, *data: bytes) -> Path:
    """The file, which holds these data, one after the other."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(data))
    return path


def read(home: Path, *, index: str = "cache/usage", **specs: Transcript) -> UsageRead:
    """What a look by way of that index finds below `home`, of the agent `one` where none is named."""
    return read_usage(specs or {"one": LINES}, f"{home}/{index}.db", home=str(home), environ={})


def count(found: UsageRead) -> int:
    """How many tokens were put out."""
    return sum(used.output for native in found.natives for used in native.used)
