"""Read usage from opencode's database (1.18.33): one row a message, changed in place until it is complete.

A fork copies messages under new ids with their times and counts and names no parent (measured), so times
and counts identify an answer.
"""

from collections.abc import Iterator, Mapping

from agent_relay.transcripts._opencode_format import ABORTED, parse_tokens
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
    note_moment,
)

SESSIONS = "SELECT id, parent_id, directory FROM session"
MESSAGES = "SELECT id, session_id, data FROM message"


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
    counts = parse_tokens(message)
    key = f"{at}/{get_whole(times, 'completed')}/{counts.input}/{counts.output - counts.reasoning}"
    used = AnswerUsage(key, at, session, get_text(message, "modelID"), *counts)
    if used.tokens:
        yield used
    error = get_map(message, "error")
    if error and get_text(error, "name") != ABORTED:
        yield TurnFailed(get_text(row, "id"), at, session)


def _read_changes(message: Mapping[str, object], key: str, at: int, session: str) -> Iterator[UsageRecord]:
    diffs = get_list(get_map(message, "summary"), "diffs")
    added = sum(get_count(diff, "additions") for diff in diffs)
    removed = sum(get_count(diff, "deletions") for diff in diffs)
    if added or removed:
        yield LinesChanged(key, at, session, added, removed)
