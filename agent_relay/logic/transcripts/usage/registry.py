"""The one table of usage readers, under the names adapters give in `transcript.reader`."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent_relay.logic.transcripts.usage.claude import read_claude_usage
from agent_relay.logic.transcripts.usage.codex import read_codex_usage
from agent_relay.logic.transcripts.usage.demo import read_demo_usage
from agent_relay.logic.transcripts.usage.gemini import read_gemini_usage
from agent_relay.logic.transcripts.usage.marks import Mark, Memory
from agent_relay.logic.transcripts.usage.opencode import (
    MESSAGES,
    SESSIONS,
    read_opencode_message,
    read_opencode_session,
)
from agent_relay.logic.transcripts.usage.spans import Block


class UsageTables(msgspec.Struct, frozen=True):
    """How usage is read from a database: queries for sessions and messages, and what a row of each means."""

    sessions: str
    messages: str
    read_session: Callable[[Mapping[str, object]], Iterator[Mark]]
    read_message: Callable[[Mapping[str, object], Memory], Iterator[Mark]]


class UsageReader(msgspec.Struct, frozen=True):
    """One native format: either files of lines, or a database.

    `root_mark` is a file in a folder above that holds the working folder. `sessions_folder` is the name of
    the folder main sessions lie in; a file deeper down is a subagent's, in a folder called like its parent.
    """

    read: Callable[[Block, Memory], Iterable[Mark]] | None = None
    tables: UsageTables | None = None
    root_mark: str = ""
    sessions_folder: str = ""


USAGE_READERS: Mapping[str, UsageReader] = {
    "claude-jsonl": UsageReader(read_claude_usage),
    "codex-rollout": UsageReader(read_codex_usage),
    "gemini-jsonl": UsageReader(read_gemini_usage, root_mark=".project_root", sessions_folder="chats"),
    "opencode-db": UsageReader(
        tables=UsageTables(SESSIONS, MESSAGES, read_opencode_session, read_opencode_message)
    ),
    "demo-jsonl": UsageReader(read_demo_usage),
}
