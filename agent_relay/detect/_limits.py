"""Read limits by an adapter's rules, and remember which were reported, so that one limit is one signal."""

import re
from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta, tzinfo

import msgspec

from agent_relay.detect._resets import find_reset
from agent_relay.domain.documents.record_matching import compile_pattern, find_value, is_meant, squeeze
from agent_relay.domain.documents.rules import Amount, LimitRule
from agent_relay.domain.limits import Kind, Record, Scope, Signal
from agent_relay.domain.values import replace

_MOST_QUOTED = 400


class LimitFinding(msgspec.Struct, frozen=True):
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


class LimitReader(msgspec.Struct, frozen=True):
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


# Countdowns on a screen move the reset they imply by their own rounding, at most an hour's minutes.
_SAME_MOMENT = timedelta(minutes=10)
# Agents have two or three windows at a time.
_MOST_WARNINGS = 16


class _Reported(msgspec.Struct, frozen=True):
    signal: Signal
    exact: bool
    window: str


class ReportedSignals:
    """The newest signal of each limit, by kind, scope and model, and the newest warnings."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, str, str], _Reported] = {}
        self._warnings: deque[Signal] = deque(maxlen=_MOST_WARNINGS)

    def admit(self, signal: Signal, *, exact: bool, window: str = "") -> tuple[Signal, ...]:
        """Return the signal, unless it adds nothing to what was reported of its limit.

        It adds something if it decides and the earlier one did not, if it brings a reset where there was none
        or an exact one where it was rounded, or if its reset is another one.
        """
        if signal.kind is Kind.NEAR_LIMIT:
            return self._admit_warning(signal)
        key = (*_identify(signal), signal.model)
        before = self._find_decided(signal) or self._newest.get(key)
        if before is not None:
            if before.signal.decides and not signal.decides:
                return ()
            if not _adds(before, signal, exact=exact):
                return ()
        self._newest[key] = _Reported(signal, exact, window)
        return (signal,)

    def _admit_warning(self, signal: Signal) -> tuple[Signal, ...]:
        """Return the warning, unless one at least as sure was of the same window.

        Resets tell windows apart. That the agent answers does not end a warning.
        """
        for known in self._warnings:
            is_as_sure = known.decides or not signal.decides
            if is_as_sure and known.model == signal.model and _covers(known, signal):
                return ()
        self._warnings.append(signal)
        return (signal,)

    def _find_decided(self, signal: Signal) -> _Reported | None:
        """Return a deciding signal of the same kind and scope that may mean the same limit.

        Sources name a model differently or not at all, and a screen's words never outweigh a decision.
        """
        for reported in self._newest.values():
            models = {signal.model, reported.signal.model}
            may_be_same = len(models) == 1 or "" in models or not signal.decides
            if _identify(reported.signal) == _identify(signal) and reported.signal.decides and may_be_same:
                return reported
        return None

    def iterate_coarse(self) -> Iterator[tuple[Signal, str]]:
        """Yield deciding signals whose reset a usage window could make exact, with its name."""
        for reported in tuple(self._newest.values()):
            if reported.signal.decides and reported.window and not reported.exact:
                yield reported.signal, reported.window

    def has_reported(self, finding: LimitFinding) -> bool:
        """Return whether a signal of this kind and scope was reported, of whichever model."""
        wanted = _identify(finding)
        return any(_identify(reported.signal) == wanted for reported in self._newest.values())

    def close(self) -> None:
        """Note that the agent answered: earlier limits are over, and the same one may decide again.

        Retries are forgotten; the rest is kept as undecided, so that old words still on the screen
        are not reported again.
        """
        self._newest = {
            key: replace(reported, signal=replace(reported.signal, decides=False))
            for key, reported in self._newest.items()
            if reported.signal.kind is not Kind.RETRY
        }


def _adds(before: _Reported, signal: Signal, *, exact: bool) -> bool:
    if signal.decides and not before.signal.decides:
        return True
    old, new = before.signal.resets_at, signal.resets_at
    if new is None:
        return False
    if old is None:
        return True
    if exact and not before.exact:
        return old != new
    return abs(old - new) > _SAME_MOMENT


def _covers(known: Signal, signal: Signal) -> bool:
    if signal.resets_at is None or known.resets_at is None:
        return signal.resets_at is None
    return abs(known.resets_at - signal.resets_at) <= _SAME_MOMENT


def _identify(limit: Signal | LimitFinding) -> tuple[str, str]:
    """Return kind and scope; a limit that an agent only waits for is of the same kind as another."""
    kind = Kind.LIMIT if limit.kind is Kind.SILENT_LIMIT else limit.kind
    return (kind, limit.scope)
