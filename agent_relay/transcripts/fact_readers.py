"""List the readers of facts: an adapter names one of them in `transcript.reader`."""

from collections.abc import Mapping

from agent_relay.transcripts._claude_facts import peek_claude, read_claude
from agent_relay.transcripts._codex_facts import peek_codex, read_codex
from agent_relay.transcripts._demo import peek_demo, read_demo
from agent_relay.transcripts._gemini import peek_gemini, read_gemini
from agent_relay.transcripts._opencode import TABLES, peek_opencode, read_opencode, unpack_export
from agent_relay.transcripts.fact_reading import TranscriptReader

_OPENCODE = TranscriptReader(
    agent="opencode",
    read=read_opencode,
    peek=peek_opencode,
    patterns=("**/opencode*.db", "**/export-*.json"),
    tables=TABLES,
    unpack=unpack_export,
)

READERS: Mapping[str, TranscriptReader] = {
    "claude-jsonl": TranscriptReader(
        agent="claude",
        read=read_claude,
        peek=peek_claude,
        patterns=("**/projects/*/*.jsonl", "*.jsonl"),
    ),
    "codex-rollout": TranscriptReader(
        agent="codex",
        read=read_codex,
        peek=peek_codex,
        patterns=("**/rollout-*.jsonl",),
    ),
    "gemini-jsonl": TranscriptReader(
        agent="gemini",
        read=read_gemini,
        peek=peek_gemini,
        patterns=("**/chats/session-*.jsonl", "session-*.jsonl", "**/logs.json"),
        root_mark=".project_root",
        prompt_log="logs.json",
    ),
    "opencode-db": _OPENCODE,
    "demo-jsonl": TranscriptReader(
        agent="demo", read=read_demo, peek=peek_demo, patterns=("*.jsonl", "**/*.jsonl")
    ),
}
