"""Parse the rows of Claude Code's session files, for facts and usage (as of 2.1.197 and 2.1.330)."""

from collections.abc import Mapping

import msgspec

from agent_relay.transcripts._diff_counts import count_hunks
from agent_relay.transcripts.lenient_json import get_list, get_map, get_text
from agent_relay.transcripts.usage_records import TokenCounts, get_tokens

SYNTHETIC_MODEL = "<synthetic>"
"""The model of answers that the program wrote itself: nothing was sent."""


class ClaudeLine(msgspec.Struct, rename="camel"):
    """What both readers take from a row; each adds how far it looks into messages and results."""

    type: str = ""
    uuid: str | None = None
    session_id: str | None = None
    timestamp: str | float | None = None
    cwd: str | None = None
    is_sidechain: bool | None = False
    is_meta: bool | None = False
    is_compact_summary: bool | None = False
    is_api_error_message: bool | None = False


def parse_tokens(usage: Mapping[str, object]) -> TokenCounts:
    """Convert Claude's token counts; its input count excludes cached and cache-written tokens."""
    return TokenCounts(
        input=get_tokens(usage, "input_tokens"),
        cached=get_tokens(usage, "cache_read_input_tokens"),
        cache_write=get_tokens(usage, "cache_creation_input_tokens"),
        output=get_tokens(usage, "output_tokens"),
        cache_write_long=get_tokens(get_map(usage, "cache_creation"), "ephemeral_1h_input_tokens"),
    )


def is_queued_prompt(attachment: object) -> bool:
    """Check whether an attachment is a prompt that the user typed while the agent worked."""
    return get_text(attachment, "type") == "queued_command" and not get_map(attachment).get("isMeta")


def count_patch(hunks: list[dict[str, object]]) -> tuple[int, int]:
    """Count added and removed lines of a result's `structuredPatch`."""
    return count_hunks(line for hunk in hunks for line in get_list(hunk, "lines"))
