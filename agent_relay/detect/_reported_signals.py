"""Remember the signals a leg reported, so that one limit is one signal and a better one replaces it."""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from agent_relay.detect._limit_rules import LimitFinding
from agent_relay.domain.signal import Kind, Signal

# Countdowns on a screen move the reset they imply by their own rounding, at most an hour's minutes.
_SAME_MOMENT = timedelta(minutes=10)
# Agents have two or three windows at a time.
_MOST_WARNINGS = 16


@dataclass(frozen=True, slots=True)
class _Reported:
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
