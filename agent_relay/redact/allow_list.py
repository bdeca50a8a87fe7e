"""The user's allow-list: values that look like secrets and are none, such as the keys of a test suite."""

import re
from dataclasses import dataclass
from functools import lru_cache

from agent_relay.redact.rules import SecretSpan


@dataclass(frozen=True, slots=True)
class AllowList:
    """What to leave: everything inside an occurrence of a literal, and values a pattern matches whole."""

    literals: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    def spares(self, text: str, span: SecretSpan) -> bool:
        """Return whether what was found at `span` of `text` stays."""
        value = text[span.start : span.end]
        if any(pattern.fullmatch(value) for pattern in self.patterns):
            return True
        for literal in self.literals:
            at = text.find(literal, max(0, span.end - len(literal)), span.start + len(literal))
            if 0 <= at <= span.start:
                return True
        return False


EMPTY_ALLOW_LIST = AllowList()
"""The allow-list of a user who has none."""


@lru_cache(maxsize=8)
def build_allow(literals: tuple[str, ...], patterns: tuple[str, ...]) -> AllowList:
    """Build the allow-list of these literals and regular expressions, which must be valid ones."""
    return AllowList(tuple(text for text in literals if text), tuple(re.compile(text) for text in patterns))
