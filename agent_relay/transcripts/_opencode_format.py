"""The messages in opencode's database, as facts and usage both read them (1.18.33)."""

from collections.abc import Mapping

from agent_relay.transcripts.lenient_json import get_map
from agent_relay.transcripts.token_counts import TokenCounts, get_tokens

ABORTED = "MessageAbortedError"
"""The name of a message's error if the user broke it off."""


def parse_tokens(message: Mapping[str, object]) -> TokenCounts:
    """Convert one message's token counts.

    Its input count excludes cached tokens, its output count the reasoning.
    """
    tokens, cache = get_map(message, "tokens"), get_map(message, "tokens", "cache")
    reasoning = get_tokens(tokens, "reasoning")
    return TokenCounts(
        input=get_tokens(tokens, "input"),
        cached=get_tokens(cache, "read"),
        cache_write=get_tokens(cache, "write"),
        output=get_tokens(tokens, "output") + reasoning,
        reasoning=reasoning,
    )
