"""The records of Gemini CLI's session files, as facts and usage both read them (measured on 0.61.0)."""

from collections.abc import Mapping

from agent_relay.transcripts._diff_counts import count_lines, count_replacement, count_unified
from agent_relay.transcripts.lenient_json import get_count, get_map, get_text
from agent_relay.transcripts.token_counts import TokenCounts, get_tokens

SYSTEM_PROMPT = "[System: "
"""How a prompt begins that the program itself sent when a turn ended on a tool's output."""


def parse_tokens(tokens: Mapping[str, object]) -> TokenCounts:
    """Convert Gemini's token counts.

    Its input count includes cached tokens; thoughts and tools' prompts are counted separately.
    """
    cached, thoughts = get_tokens(tokens, "cached"), get_tokens(tokens, "thoughts")
    return TokenCounts(
        input=max(0, get_tokens(tokens, "input") - cached) + get_tokens(tokens, "tool"),
        cached=cached,
        output=get_tokens(tokens, "output") + thoughts,
        reasoning=thoughts,
    )


def count_change(call: object) -> tuple[int, int] | None:
    """Count added and removed lines of an edit; `None` if the call records none."""
    display = get_map(call, "resultDisplay")
    stat = get_map(display, "diffStat")
    if "model_added_lines" in stat:
        added = get_count(stat, "model_added_lines") + get_count(stat, "user_added_lines")
        return added, get_count(stat, "model_removed_lines") + get_count(stat, "user_removed_lines")
    if get_text(display, "fileDiff"):
        return count_unified(get_text(display, "fileDiff"))
    arguments = get_map(call, "args")
    if get_text(arguments, "new_string"):
        return count_replacement(get_text(arguments, "old_string"), get_text(arguments, "new_string"))
    return (count_lines(get_text(arguments, "content")), 0) if get_text(arguments, "content") else None
