"""Parse the records of Codex's rollouts, for facts and usage (measured on 0.169.0)."""

from collections.abc import Mapping

from agent_relay.transcripts._diff_counts import count_lines, count_unified
from agent_relay.transcripts.lenient_json import get_map, get_text
from agent_relay.transcripts.usage_records import TokenCounts, get_tokens

TURN_ENDS = ("task_complete", "turn_complete")
"""The events that end a turn, with the turn's `error` if there was one; the first is of older versions."""
TURN_STARTS = ("task_started", "turn_started")
COUNT_NAMES = (
    "input_tokens", "cached_input_tokens", "cache_write_input_tokens", "output_tokens",
    "reasoning_output_tokens", "total_tokens",
)  # fmt: skip
"""The names of the counts in `usage`, `total_token_usage` and `last_token_usage`."""


def parse_tokens(usage: Mapping[str, object]) -> TokenCounts:
    """Convert Codex's token counts.

    Its input count includes cached and cache-written tokens, its output count the reasoning.
    """
    cached, written = get_tokens(usage, "cached_input_tokens"), get_tokens(usage, "cache_write_input_tokens")
    return TokenCounts(
        input=max(0, get_tokens(usage, "input_tokens") - cached - written),
        cached=cached,
        cache_write=written,
        output=get_tokens(usage, "output_tokens"),
        reasoning=get_tokens(usage, "reasoning_output_tokens"),
    )


def is_subagent(meta: Mapping[str, object]) -> bool:
    """Check whether the thread works for another: its `source` is an object; people's are words."""
    return isinstance(meta.get("source"), dict)


def find_parent(meta: Mapping[str, object]) -> str:
    """Return the thread that this one was forked from or works for; empty for neither."""
    spawned = get_map(meta, "source", "subagent", "thread_spawn")
    return get_text(meta, "forked_from_id") or get_text(spawned, "parent_thread_id")


def is_refused(item: Mapping[str, object]) -> bool:
    """Check whether the item is a change of files that failed or that the user declined."""
    return item.get("status") in ("failed", "declined")


def count_change(change: object) -> tuple[int, int]:
    """Count added and removed lines of one file's change in an item `FileChange`."""
    match get_text(change, "type"):
        case "add":
            return count_lines(get_text(change, "content")), 0
        case "delete":
            return 0, count_lines(get_text(change, "content"))
        case _:
            return count_unified(get_text(change, "unified_diff"))
