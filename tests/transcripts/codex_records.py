"""Records of Codex's rollouts as they are written, and two answers of one session."""

from agent_relay.transcripts._codex_usage import read_codex_usage
from agent_relay.transcripts.usage_records import ReaderState, UsageRecord
from tests.transcripts.rows import join_compact

Record = dict[str, object]


def read_records(*records: Record) -> list[UsageRecord]:
    return list(read_codex_usage(join_compact(*records), ReaderState()))


def build_line(kind: str, at: str = "10:00:05", **payload: object) -> Record:
    return {"timestamp": f"2026-11-20T{at}.000Z", "ordinal": 1, "type": kind, "payload": payload}


def build_meta(thread: str, at: str = "10:00:00", **more: object) -> Record:
    return build_line("session_meta", at, id=thread, cwd="/w", source="cli", **more)


def build_counts(size: int, cached: int, output: int, reasoning: int = 0, written: int = 0) -> Record:
    return {
        "input_tokens": size,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": written,
        "output_tokens": output,
        "reasoning_output_tokens": reasoning,
        "total_tokens": size + output,
    }


def build_count(total: Record, last: Record | None, at: str = "10:00:05") -> Record:
    info: Record = {"total_token_usage": total} | ({"last_token_usage": last} if last else {})
    return build_line("event_msg", at, type="token_count", info=info)


def build_record(response: str, usage: Record, total: Record, at: str = "10:00:04") -> Record:
    return build_line("token_usage_record", at, response_id=response, usage=usage, thread_token_usage=total)


FIRST, SECOND = build_counts(9000, 7000, 120, 64), build_counts(10_000, 9000, 80, 16, 500)
BOTH = build_counts(19_000, 16_000, 200, 80, 500)
