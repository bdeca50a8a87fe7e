"""Read usage from the demo agents' transcripts: every record is on one line of its own, once."""

from collections.abc import Iterator

import msgspec

from agent_relay.transcripts.lenient_json import get_count, get_text
from agent_relay.transcripts.token_counts import get_tokens
from agent_relay.transcripts.usage.records import (
    AnswerUsage,
    LinesChanged,
    PromptSent,
    ReaderState,
    SessionOpened,
    TurnFailed,
    UsageRecord,
    decode_lines,
    note_moment,
)

_rows = msgspec.json.Decoder(dict[str, object])


def read_demo_usage(data: bytes, memory: ReaderState) -> Iterator[UsageRecord]:
    """Yield the usage records of whole lines; `memory` carries the state from line to line."""
    for row in decode_lines(data, _rows, memory):
        yield from _read_row(row, memory)


def _read_row(row: dict[str, object], memory: ReaderState) -> Iterator[UsageRecord]:
    at = note_moment(memory, row.get("at"))
    # Rows have no names of their own: their order among the session's is one.
    memory.total = str(int(memory.total or 0) + 1)
    key, session = f"{memory.session}#{memory.total}", memory.session
    match get_text(row, "type"):
        case "session":
            memory.session = get_text(row, "id") or memory.session
            yield SessionOpened(memory.session, get_text(row, "cwd"))
        case "prompt":
            yield PromptSent(key, at, session)
        case "limit":
            yield TurnFailed(key, at, session)
        case "edit":
            yield LinesChanged(key, at, session, get_count(row, "added"), get_count(row, "removed"))
        case "usage":
            model, output = get_text(row, "model") or "scripted", get_tokens(row, "output")
            yield AnswerUsage(key, at, session, model, get_tokens(row, "input"), output=output)
        case _:
            pass
