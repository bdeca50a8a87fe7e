"""Adds up what native sessions used, for tests with literals worked out by hand."""

from collections.abc import Sequence

from agent_relay.transcripts.usage_records import list_columns
from agent_relay.usage._dedupe import Native


def sum_used(natives: Sequence[Native]) -> tuple[int, int, int, int, int]:
    """New input, cached, written to the cache, output and reasoning."""
    counts = [list_columns(native.used).counts for native in natives]
    new, cached, written, output, reasoning = (sum(sum(one[place]) for one in counts) for place in range(5))
    return new, cached, written, output, reasoning
