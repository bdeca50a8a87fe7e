"""Usage in the demo agents' transcripts: every record stands on one line of its own, once."""

from collections.abc import Iterator

import msgspec

from agent_relay.logic.transcripts.lines import decode_mended, get_count, get_text
from agent_relay.logic.transcripts.usage.marks import (
    Changed,
    Failed,
    Mark,
    Memory,
    Opened,
    Prompted,
    Used,
    get_tokens,
    note_moment,
)
from agent_relay.logic.transcripts.usage.spans import Block, iterate_spans

_rows = msgspec.json.Decoder(dict[str, object])


def read_demo_usage(data: Block, memory: Memory) -> Iterator[Mark]:
    """The marks of whole lines; `memory` goes on from line to line."""
    for start, end in iterate_spans(data):
        try:
            row = decode_mended(data[start:end], _rows.decode)
        except (msgspec.DecodeError, RecursionError):
            memory.skipped += 1
            continue
        yield from _read_row(row, memory)


def _read_row(row: dict[str, object], memory: Memory) -> Iterator[Mark]:
    at = note_moment(memory, row.get("at"))
    # Rows have no names of their own: their order among the session's is one.
    memory.total = str(int(memory.total or 0) + 1)
    key, session = f"{memory.session}#{memory.total}", memory.session
    match get_text(row, "type"):
        case "session":
            memory.session = get_text(row, "id") or memory.session
            yield Opened(memory.session, get_text(row, "cwd"))
        case "prompt":
            yield Prompted(key, at, session)
        case "limit":
            yield Failed(key, at, session)
        case "edit":
            yield Changed(key, at, session, get_count(row, "added"), get_count(row, "removed"))
        case "usage":
            tokens = {"input": get_tokens(row, "input"), "output": get_tokens(row, "output")}
            model = get_text(row, "model") or "scripted"
            yield Used(key, at, session, model, tokens["input"], output=tokens["output"])
        case _:
            pass
