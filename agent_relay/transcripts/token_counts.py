"""Tokens of one answer as every format's reader counts them: for facts and for usage alike."""

from collections.abc import Mapping
from typing import NamedTuple

MOST_TOKENS = 10**12
"""No request is this large; a record with more is damaged, and would not fit the usage index's integers."""


class TokenCounts(NamedTuple):
    """The tokens of one answer, each counted once but for what is said here.

    `input` excludes what was `cached` or written to the cache, `output` includes `reasoning`, and
    `cache_write` includes `cache_write_long` (for an hour).
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cache_write_long: int = 0


def get_tokens(value: Mapping[str, object], key: str) -> int:
    """Return the number of tokens under `key`: 0 if there is none, or one below 0 or above `MOST_TOKENS`."""
    found = value.get(key)
    return found if type(found) is int and 0 <= found <= MOST_TOKENS else 0
