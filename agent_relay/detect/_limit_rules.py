"""Read what one text means by an adapter's limit rules: kind, scope, reset and model."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo

from agent_relay.detect._resets import find_reset
from agent_relay.domain.documents.record_matching import compile_pattern, find_value, is_meant, squeeze
from agent_relay.domain.documents.rules import Amount, LimitRule
from agent_relay.domain.signal import Kind, Record, Scope

_MOST_QUOTED = 400


@dataclass(frozen=True, slots=True)
class LimitFinding:
    """One reading of one text: `words` matched the rule, `quote` shows them to people.

    `exact` is whether the reset is finer than a minute's rounding.
    """

    rule: LimitRule
    kind: Kind
    scope: Scope
    quote: str
    words: str
    resets_at: datetime | None = None
    exact: bool = False
    model: str = ""


def match_rule(rule: LimitRule, text: str) -> re.Match[str] | None:
    """Return the match of the rule's pattern in a squeezed text, or `None`."""
    return compile_pattern(rule.pattern).search(squeeze(text))


@dataclass(frozen=True, slots=True)
class LimitReader:
    """Reads texts by one agent's limit rules, for a leg in `zone` whose user waits for `patience`."""

    rules: tuple[LimitRule, ...]
    zone: tzinfo
    patience: timedelta

    def read(
        self, text: str, feed: str, *, at: datetime, record: Record | None = None
    ) -> LimitFinding | None:
        """Return what the first matching rule of `feed` says, or `None` if none matches.

        `at` is when the text was said; `record` the structured record that holds it, `None` for a screen.
        """
        for rule in self.rules:
            if feed not in rule.feeds or (record is not None and not is_meant(rule.where, record.data)):
                continue
            match = match_rule(rule, text)
            if match is not None:
                return self._build(rule, match, at, record)
        return None

    def _build(
        self, rule: LimitRule, match: re.Match[str], at: datetime, record: Record | None
    ) -> LimitFinding:
        groups = match.groupdict()
        kind, scope = rule.kind, rule.scope
        resets_at, exact = None, False
        for amount in rule.reset:
            resets_at = self._find(amount, groups, at, record)
            if resets_at is not None:
                exact = bool(amount.field)
                break
        if rule.wait is not None:
            until = self._find(rule.wait, groups, at, record)
            if until is not None and until - at > self.patience:
                kind, scope = Kind.SILENT_LIMIT, rule.long_scope or scope
                resets_at = resets_at or until
        start = 0 if match.end() <= _MOST_QUOTED else match.start()
        quote = match.string[start : start + _MOST_QUOTED]
        return LimitFinding(rule, kind, scope, quote, match[0], resets_at, exact, groups.get("model") or "")

    def _find(
        self, amount: Amount, groups: dict[str, str | None], at: datetime, record: Record | None
    ) -> datetime | None:
        value: object = None
        if amount.field:
            value = find_value(record.data, amount.field) if record is not None else None
        elif amount.group:
            value = groups.get(amount.group)
        return None if value is None else find_reset(value, amount.forms, at=at, zone=self.zone)
