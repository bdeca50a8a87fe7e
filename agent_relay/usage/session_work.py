"""Describe the work of a session of ours: its legs, its waiting and its handoffs, as spans of time."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from agent_relay.domain.state import State

WAITING = frozenset({State.LIMITED, State.RESTING})
"""The states in which a session waits for a limit to end, or for a person to continue it."""
EARLY_MS = 2_000
"""Most milliseconds a native record may be dated before the leg's first journal line."""
LATE_MS = 10_000
"""Milliseconds after a leg's end whose records are still its own: it writes while it is being ended."""


class StateSpan(msgspec.Struct, frozen=True):
    """The session was in `state` from `begin` to `end`, with the leg `leg`, epoch in ms."""

    state: State
    leg: str
    begin: int
    end: int


class HandoffSpan(msgspec.Struct, frozen=True):
    """A completed handoff, begun by a limit or not; `took_ms` is from its cause to the successor at work."""

    from_leg: str
    leg: str
    at: int
    took_ms: int
    is_failover: bool


class LegWork(msgspec.Struct):
    """One leg's time, epoch in ms, and the native sessions it worked in.

    `begin` is 0 for a leg that was adopted: all that its native session held was its history. `end` is the
    present for a living one. `handoff` brought it, empty for none; `lane` is how it learned of the work.
    """

    leg: str
    agent: str
    begin: int
    end: int
    natives: list[str] = msgspec.field(default_factory=list)
    limits: list[int] = msgspec.field(default_factory=list)
    handoff: str = ""
    lane: str = ""


class RelayRequest(msgspec.Struct, frozen=True):
    """The usage of a request of relay's own, for a handoff document; no leg's record has it.

    It is counted as the `agent`'s, with the leg that the handoff led to, at the epoch in ms. `counts` are
    input, cached, written to the cache, output and reasoning, each counted once as in `TokenCounts`.
    """

    at: int
    leg: str
    agent: str
    model: str
    counts: tuple[int, int, int, int, int]


class SessionWork(msgspec.Struct):
    """One session of ours as its journal records it."""

    session: str
    root: str
    legs: list[LegWork]
    spans: list[StateSpan]
    passings: list[HandoffSpan]
    requests: list[RelayRequest] = msgspec.field(default_factory=list)


def find_leg(legs: Sequence[LegWork], at: int) -> LegWork | None:
    """Return the leg whose work something in their common native session is; `None` for none.

    It is the newest that had begun, if one had; an agent may still write while its leg is being ended.
    """
    found = None
    for leg in legs:
        if leg.begin - EARLY_MS <= at <= leg.end + LATE_MS and (found is None or leg.begin <= at):
            found = leg
    return found


def to_ms(at: datetime) -> int:
    """Return `at` as epoch in ms."""
    return int(at.timestamp() * 1000)
