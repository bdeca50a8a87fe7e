"""Read usage from opencode's database (1.18.33): one row a message, changed in place until it is complete.

A fork copies messages under new ids with their times and counts and names no parent (measured), so times
and counts identify an answer.
"""

from collections.abc import Iterator, Mapping

from agent_relay.transcripts.lenient_json import (
    decode_text,
    get_count,
    get_list,
    get_map,
    get_text,
    get_whole,
)
from agent_relay.transcripts.usage.records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    get_tokens,
    note_moment,
)

SESSIONS = "SELECT id, parent_id, directory FROM session"
MESSAGES = "SELECT id, session_id, data FROM message"
_ABORTED = "MessageAbortedError"


def read_opencode_session(row: Mapping[str, object]) -> Iterator[UsageRecord]:
    """Yield the session that a row of the table of sessions describes."""
    parent = get_text(row, "parent_id")
    if get_text(row, "id"):
        yield SessionOpened(get_text(row, "id"), get_text(row, "directory"), parent, bool(parent))


def read_opencode_message(row: Mapping[str, object], memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of one row of the table of messages; only complete answers count."""
    data = row.get("data")
    message = get_map(decode_text(data)) if isinstance(data, str) else {}
    key, session = get_text(row, "id"), get_text(row, "session_id")
    if not message or not key:
        memory.skipped += 1
        return
    times = get_map(message, "time")
    at = note_moment(memory, times.get("created"))
    if get_text(message, "role") == "user":
        yield PromptSent(f"{at}", at, session)
        yield from _read_changes(message, key, at, session)
        return
    if get_whole(times, "completed") is None:
        return
    tokens = get_map(message, "tokens")
    cache, reasoning = get_map(tokens, "cache"), get_tokens(tokens, "reasoning")
    counts = get_tokens(tokens, "input"), get_tokens(tokens, "output")
    used = AnswerUsage(
        key=f"{at}/{get_whole(times, 'completed')}/{counts[0]}/{counts[1]}",
        at=at,
        session=session,
        model=get_text(message, "modelID"),
        input=counts[0],
        cached=get_tokens(cache, "read"),
        cache_write=get_tokens(cache, "write"),
        output=counts[1] + reasoning,
        reasoning=reasoning,
    )
    if used.tokens:
        yield used
    error = get_map(message, "error")
    if error and get_text(error, "name") != _ABORTED:
        yield TurnFailed(key, at, session)


def _read_changes(message: Mapping[str, object], key: str, at: int, session: str) -> Iterator[UsageRecord]:
    diffs = get_list(get_map(message, "summary"), "diffs")
    added = sum(get_count(diff, "additions") for diff in diffs)
    removed = sum(get_count(diff, "deletions") for diff in diffs)
    if added or removed:
        yield LinesChanged(key, at, session, added, removed)
