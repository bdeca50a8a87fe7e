"""List the readers of usage by the names adapters give in `transcript.reader`; each is imported on use."""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from agent_relay.transcripts.usage_records import ReaderState, UsageRecord


class UsageTables(msgspec.Struct, frozen=True):
    """Reading of usage from a database: queries for sessions and messages, and what a row of each means."""

    sessions: str
    messages: str
    read_session: Callable[[Mapping[str, object]], Iterator[UsageRecord]]
    read_message: Callable[[Mapping[str, object], ReaderState], Iterator[UsageRecord]]


class UsageReader(msgspec.Struct, frozen=True):
    """One native format: either files of lines, or a database.

    `root_mark` is a file in a folder above that holds the working folder. `sessions_folder` is the name of
    the folder of main sessions; a file deeper down is a subagent's, in a folder named like its parent.
    """

    read: Callable[[bytes, ReaderState], Iterable[UsageRecord]] | None = None
    tables: UsageTables | None = None
    root_mark: str = ""
    sessions_folder: str = ""


def _load_claude() -> UsageReader:
    from agent_relay.transcripts._claude_usage import read_claude_usage

    return UsageReader(read_claude_usage)


def _load_codex() -> UsageReader:
    from agent_relay.transcripts._codex_usage import read_codex_usage

    return UsageReader(read_codex_usage)


def _load_demo() -> UsageReader:
    from agent_relay.transcripts._demo import read_demo_usage

    return UsageReader(read_demo_usage)


def _load_gemini() -> UsageReader:
    from agent_relay.transcripts._gemini import read_gemini_usage

    return UsageReader(read_gemini_usage, root_mark=".project_root", sessions_folder="chats")


def _load_opencode() -> UsageReader:
    from agent_relay.transcripts import _opencode as tables

    told = tables.SESSIONS, tables.MESSAGES, tables.read_opencode_session, tables.read_opencode_message
    return UsageReader(tables=UsageTables(*told))


USAGE_READERS: Mapping[str, Callable[[], UsageReader]] = {
    "claude-jsonl": _load_claude,
    "codex-rollout": _load_codex,
    "gemini-jsonl": _load_gemini,
    "opencode-db": _load_opencode,
    "demo-jsonl": _load_demo,
}
"""The loader of each reader: only the readers that are needed are imported."""
