"""The one table of readers: an adapter names one of them in `transcript.reader`."""

from collections.abc import Mapping

from agent_relay.logic.transcripts.claude import peek_claude, read_claude
from agent_relay.logic.transcripts.codex import peek_codex, read_codex
from agent_relay.logic.transcripts.demo import peek_demo, read_demo
from agent_relay.logic.transcripts.shape import Reader

READERS: Mapping[str, Reader] = {
    "claude-jsonl": Reader(
        agent="claude",
        storage="lines",
        read=read_claude,
        peek=peek_claude,
        patterns=("projects/*/*.jsonl",),
    ),
    "codex-rollout": Reader(
        agent="codex",
        storage="lines",
        read=read_codex,
        peek=peek_codex,
        patterns=("sessions/**/rollout-*.jsonl",),
    ),
    "demo-jsonl": Reader(
        agent="demo",
        storage="lines",
        read=read_demo,
        peek=peek_demo,
        patterns=("*.jsonl",),
    ),
}
