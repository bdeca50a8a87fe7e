"""What a journal tells of time, limits and handoffs."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.events.session import (
    Body,
    Event,
    LegBusy,
    LegEnded,
    LegNamed,
    LegReady,
    LegStarted,
    LegStarting,
    SessionCreated,
    SessionEnded,
    SignalSeen,
    Unknown,
)
from agent_relay.domain.events.work import (
    DigestEnded,
    HandoffBegun,
    HandoffConfirmed,
    HandoffFailed,
    PredecessorStopped,
)
from agent_relay.domain.state import State
from agent_relay.usage._session_work_fold import fold_work
from agent_relay.usage.session_work import LegWork, RelayRequest, SessionWork, find_leg

BEGIN = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
ZERO = 1_795_168_800_000


def fold(*steps: tuple[float, Body], now_s: float = 1000) -> SessionWork:
    """The work of a journal of (seconds, body)."""
    events = [
        Event(number, BEGIN + timedelta(seconds=at), 1, body) for number, (at, body) in enumerate(steps, 1)
    ]
    work = fold_work(events, BEGIN + timedelta(seconds=now_s))
    assert work is not None
    return work


def limit(leg: str, agent: str) -> SignalSeen:
    """A deciding limit of an account."""
    return SignalSeen(leg, agent, "limit", "account", "hook", "limit", decides=True)


CREATED = SessionCreated("S", "/w", "/w", task="t")
FAILOVER: tuple[tuple[float, Body], ...] = (
    (0, CREATED),
    (1, LegStarting("a", "one", 1, native_id="n1")),
    (2, LegStarted("a", 1, 2, 3)),
    (4, LegBusy("a")),
    (10, limit("a", "one")),
    (10.5, limit("a", "one")),
    (11, HandoffBegun("h", "a", "one", "two", "rate_limit")),
    (12, LegEnded("a", "stopped", 0)),
    (12, PredecessorStopped("h", "a")),
    (13, LegStarting("b", "two", 2, native_id="", handoff="h")),
    (14, LegStarted("b", 1, 2, 3)),
    (15, LegReady("b")),
    (16, LegBusy("b")),
    (16, HandoffConfirmed("h", "b")),
    (17, LegNamed("b", "n2")),
    (20, LegNamed("b", "n3")),
    (30, LegEnded("b", "exited", 0)),
    (31, SessionEnded("done")),
)


def test_a_failover_is_told_in_spans_limits_and_its_latency() -> None:
    """From the limit at 10 s to the successor at work at 16 s: 6 s. The limit told twice was hit once."""
    work = fold(*FAILOVER)
    assert [(span.state, span.leg, span.begin - ZERO, span.end - ZERO) for span in work.spans] == [
        (State.STARTING, "", 0, 1000),
        (State.STARTING, "a", 1000, 4000),
        (State.BUSY, "a", 4000, 10_000),
        (State.LIMITED, "a", 10_000, 11_000),
        (State.HANDING_OFF, "a", 11_000, 13_000),
        (State.STARTING, "b", 13_000, 15_000),
        (State.READY, "b", 15_000, 16_000),
        (State.BUSY, "b", 16_000, 30_000),
        (State.STOPPING, "b", 30_000, 31_000),
    ]
    assert [(leg.leg, leg.natives, [at - ZERO for at in leg.limits]) for leg in work.legs] == [
        ("a", ["n1"], [10_000]),
        ("b", ["n2", "n3"], []),
    ]
    assert [(one.from_leg, one.leg, one.took_ms, one.is_failover) for one in work.passings] == [
        ("a", "b", 6000, True)
    ]


def test_a_handover_for_a_budget_is_not_measured_from_a_limit_of_long_before() -> None:
    """It is a failover without a limit of its own: from its beginning at 100 s to work at 105 s are 5 s."""
    work = fold(
        *FAILOVER[:14],
        (100, HandoffBegun("i", "b", "two", "one", "rate_limit")),
        (101, LegEnded("b", "stopped", 0)),
        (101, PredecessorStopped("i", "b")),
        (102, LegStarting("c", "one", 3, native_id="", handoff="i")),
        (103, LegStarted("c", 1, 2, 3)),
        (104, LegReady("c")),
        (105, LegBusy("c")),
        (105, HandoffConfirmed("i", "c")),
    )
    assert [(one.from_leg, one.leg, one.took_ms) for one in work.passings] == [
        ("a", "b", 6000), ("b", "c", 5000)
    ]  # fmt: skip


def test_what_is_under_way_lasts_until_now_and_what_failed_is_no_handoff() -> None:
    """A living session's time grows while one looks; a handoff by hand is no failover."""
    failed = fold(
        (0, CREATED),
        (1, LegStarting("a", "one", 1)),
        (2, LegStarted("a", 1, 2, 3)),
        (4, LegBusy("a")),
        (5, HandoffBegun("h", "a", "one", "two", "manual")),
        (6, HandoffFailed("h", "begun", "why")),
        now_s=100,
    )
    assert failed.passings == []
    assert (failed.spans[-1].state, failed.spans[-1].end - ZERO) == (State.LIMITED, 100_000)
    living = fold((0, CREATED), (1, LegStarting("a", "one", 1)), (2, LegBusy("a")), now_s=60)
    assert (living.spans[-1].state, living.spans[-1].end - ZERO) == (State.BUSY, 60_000)
    assert living.legs[0].end - ZERO == 60_000
    by_hand = fold(
        (0, CREATED),
        (1, LegStarting("a", "one", 1)),
        (2, LegReady("a")),
        (3, HandoffBegun("h", "a", "one", "two", "manual")),
        (4, LegStarting("b", "two", 2)),
        (5, LegReady("b")),
        (6, HandoffConfirmed("h", "b")),
    )
    assert [(one.took_ms, one.is_failover) for one in by_hand.passings] == [(3000, False)]


def test_an_adopted_leg_owns_its_whole_history() -> None:
    """It never ran under relay: what its native session held came before the journal began."""
    work = fold(
        (0, CREATED),
        (0, LegStarting("a", "one", 1, native_id="n1")),
        (0, LegBusy("a")),
        (0, LegNamed("a", "n1", "/t")),
        (0, LegEnded("a", "exited", 0)),
        (0, SessionEnded("adopted from one")),
    )
    assert [(leg.begin, leg.end, leg.natives) for leg in work.legs] == [(0, ZERO, ["n1"])]
    assert fold_work([Event(1, BEGIN, 1, Unknown("session.imagined", {}))], BEGIN) is None


def test_a_moment_belongs_to_the_leg_that_was_at_work() -> None:
    """Two legs resume one native session within a second: the later one's work is not the earlier one's."""
    first, second = LegWork("a", "one", 1000, 5000), LegWork("b", "one", 6000, 9000)
    legs = (first, second)
    assert [find_leg(legs, at) for at in (1500, 5500, 6000, 9000, 30_000)] == [
        first, first, second, second, None,
    ]  # fmt: skip
    assert find_leg((second,), 4500) is second


def test_what_relay_asked_for_is_of_the_leg_it_was_asked_for() -> None:
    """No leg's record holds it; of a handoff that led to none it is the last leg's."""
    used = {"input": 10, "cached": 20, "cache_write": 1, "output": 5, "reasoning": 2}
    asked = (12.5, DigestEnded("h", "two", "written", model="m", **used))
    work = fold(*FAILOVER[:9], asked, *FAILOVER[9:])
    assert work.requests == [RelayRequest(ZERO + 12_500, "b", "two", "m", (10, 20, 1, 5, 2))]
    alone = fold(*FAILOVER[:9], asked)
    assert [one.leg for one in alone.requests] == ["a"]
