"""Fold a session's journal into its work, and find the sessions that continue one another.

Sessions of ours and the agents' own are connected by legs in one native session, or by forks.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from agent_relay.domain.events.session import Event, LegNamed, LegStarted, LegStarting, SignalSeen
from agent_relay.domain.events.work import DigestEnded, HandoffBegun, HandoffConfirmed, HandoffFailed
from agent_relay.domain.names import IMPORTED
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.names import name_lane
from agent_relay.session.fold import fold_event
from agent_relay.usage._dedupe import Native
from agent_relay.usage.session_work import (
    HandoffSpan,
    LegWork,
    RelayRequest,
    SessionWork,
    StateSpan,
    to_ms,
)

_OVER = frozenset({State.ENDED, State.STOPPING})


def fold_work(events: Iterable[Event], now: datetime) -> SessionWork | None:
    """Return the work of one session; `None` for a journal without its first event.

    Raises ImpossibleEventError where the journal contradicts itself.
    """
    session: Session | None = None
    work = _Work()
    for event in events:
        before = session
        session = fold_event(session, event)
        if session is not None:
            work.take(before, session, event)
    return None if session is None else work.build(session, to_ms(now))


class _Work:
    """The spans so far, and what is under way."""

    def __init__(self) -> None:
        self._spans: list[StateSpan] = []
        self._passings: list[HandoffSpan] = []
        self._digests: list[tuple[int, DigestEnded]] = []
        self._names: dict[str, list[str]] = {}
        self._limits: dict[str, list[int]] = {}
        self._started: set[str] = set()
        self._begun: dict[str, tuple[str, int, bool]] = {}
        self._since = 0
        self._limited_at = 0

    def take(self, before: Session | None, session: Session, event: Event) -> None:
        """Follow one event from the session before it to the one after it."""
        at = to_ms(event.at)
        if before is None:
            self._since = at
        elif (before.state, _leg(before)) != (session.state, _leg(session)):
            self._spans.append(StateSpan(before.state, _leg(before), self._since, max(at, self._since)))
            self._since = at
        if session.state is State.BUSY:
            # Who works is under no limit any more: what is handed over next is so for something else.
            self._limited_at = 0
        match event.body:
            case LegStarting(leg, native_id=native) | LegNamed(leg, native_id=native):
                names = self._names.setdefault(leg, [])
                if native and native not in names:
                    names.append(native)
            case LegStarted(leg):
                self._started.add(leg)
            case SignalSeen(leg) if session.state is State.LIMITED and before is not None:
                # Several sources may tell of one limit: the one that changed the session's state counts.
                if before.state is not State.LIMITED:
                    self._limits.setdefault(leg, []).append(at)
                    self._limited_at = at
            case _:
                self._take_handoff(event, at)

    def _take_handoff(self, event: Event, at: int) -> None:
        match event.body:
            case HandoffBegun(handoff, from_leg) as begun:
                is_failover = begun.reason == "rate_limit"
                self._begun[handoff] = (
                    from_leg,
                    (self._limited_at or at) if is_failover else at,
                    is_failover,
                )
            case HandoffConfirmed(handoff, leg) if handoff in self._begun:
                from_leg, since, is_failover = self._begun.pop(handoff)
                self._passings.append(HandoffSpan(from_leg, leg, at, max(0, at - since), is_failover))
            case HandoffFailed(handoff):
                self._begun.pop(handoff, None)
            case DigestEnded() as body:
                self._digests.append((at, body))
            case _:
                pass

    def build(self, session: Session, now_ms: int) -> SessionWork:
        """Return the session's work; what is still under way ends now."""
        last = to_ms(session.updated_at)
        end = last if session.state in _OVER else max(now_ms, last)
        if session.state not in _OVER:
            self._spans.append(StateSpan(session.state, _leg(session), self._since, max(end, self._since)))
        legs = [
            LegWork(
                leg.id,
                leg.agent,
                0 if leg.is_over and leg.id not in self._started and leg.was_busy else to_ms(leg.starting_at),
                end if leg.ended_at is None else to_ms(leg.ended_at),
                self._names.get(leg.id, []),
                self._limits.get(leg.id, []),
                leg.handoff,
                name_lane(resumes=leg.resumes, why=leg.lane_why) if leg.handoff else "",
            )
            for leg in session.legs
            if leg.agent != IMPORTED
        ]
        return SessionWork(
            session.id,
            session.root,
            legs,
            self._spans,
            self._passings,
            [_count(session, at, body) for at, body in self._digests],
        )


def _count(session: Session, at: int, ended: DigestEnded) -> RelayRequest:
    """Return the usage of a document's request, counted with the leg it was for, or else the last leg."""
    legs = [leg.id for leg in session.legs if leg.handoff == ended.handoff]
    counts = (ended.input, ended.cached, ended.cache_write, ended.output, ended.reasoning)
    return RelayRequest(at, legs[-1] if legs else _leg(session), ended.agent, ended.model, counts)


def _leg(session: Session) -> str:
    return session.legs[-1].id if session.legs else ""


def find_lineage(
    works: Sequence[SessionWork],
    natives: Sequence[Native],
    begin_works: Sequence[SessionWork],
    begin_natives: Sequence[Native],
) -> tuple[list[SessionWork], list[Native]]:
    """Return all sessions connected with those to begin from, by legs in one native session or by forks."""
    ours = {work.session for work in begin_works}
    own = {native.session for native in begin_natives}
    size = -1
    while size != len(ours) + len(own):
        size = len(ours) + len(own)
        for work in works:
            named = {native for leg in work.legs for native in leg.natives}
            if work.session in ours or named & own:
                ours.add(work.session)
                own |= named
        for native in natives:
            if native.session in own and native.parent:
                own.add(native.parent)
            elif native.parent in own:
                own.add(native.session)
    return (
        [work for work in works if work.session in ours],
        [native for native in natives if native.session in own],
    )
