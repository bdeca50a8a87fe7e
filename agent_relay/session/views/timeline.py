"""Fold a session's journal into its timeline: who worked when, what was handed over, who rested.

Terminal, JSON and page draw the one `TimelineTold` that `TimelineFold.build` returns. Turns are those that a
session's state shows, and prompts that were over before it could. Moments are taken as the journal has them,
but no span ends before it begins.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from agent_relay.domain.events import session as events
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.names import IMPORTED
from agent_relay.domain.protocol.timeline import (
    UNKNOWN_USAGE,
    TimelineGap,
    TimelineHandoff,
    TimelineLane,
    TimelineLeg,
    TimelineRest,
    TimelineTold,
    TimelineTurn,
    TimelineUsage,
    sum_usage,
)
from agent_relay.domain.protocol.watch_output import WindowUsed
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.text.plain import clean_text
from agent_relay.session.fold import fold_event, is_limit
from agent_relay.session.handoff_history import HandoffHistory, HandoffRecord, LegRecord
from agent_relay.session.views.summary import make_title

_AT_WORK = frozenset({State.BUSY, State.ASKING})
_SHORTEST_GAP_S = 600.0
_MOST_GAPS = 8
_MOST_WHY = 300


class TimelineBounds(msgspec.Struct, frozen=True):
    """Bounds of a timeline that is shown: the newest legs and handoffs, and turns merged above a number."""

    legs: int
    turns: int
    handoffs: int


class _Turn(msgspec.Struct):
    number: int
    begin: datetime
    end: datetime | None = None
    prompt: str = ""
    count: int = 1


class _Rest(msgspec.Struct):
    begin: datetime
    until: str
    end: datetime | None = None
    scope: str = ""
    model: str = ""
    why: str = ""


class _LegMore(msgspec.Struct):
    """Facts of a leg that `LegRecord` does not have; `waiting` is a prompt whose turn has not been seen."""

    model: str
    headless: bool
    turns: list[_Turn] = msgspec.field(default_factory=list)
    waiting: _Turn | None = None


class TimelineFold:
    """Follows one session's events; `build` may be called at any time."""

    def __init__(self) -> None:
        self._history = HandoffHistory()
        self._legs: dict[str, _LegMore] = {}
        self._turns = 0
        self._turn: _Turn | None = None
        self._rests: list[_Rest] = []
        self._limits: dict[str, list[_Rest]] = {}
        self._idle: list[tuple[datetime, datetime]] = []
        self._begin = self._last = self._before = datetime.min.replace(tzinfo=UTC)
        self._was_set_back = False
        self._session: Session | None = None

    def hear(self, event: events.Event) -> None:
        """Fold one more event; raise ImpossibleEventError if the journal contradicts itself."""
        session = fold_event(self._session, event)
        if session is not None:
            self.take(session, event)

    def take(self, session: Session, event: events.Event) -> None:
        """Follow one event; `session` is the one after it."""
        at = event.at
        if self._session is None:
            self._begin = self._last = self._before = at
        self._note_time(at)
        self._session = session
        self._history.hear(event)
        match event.body:
            case events.LegStarting() as body:
                self._legs.setdefault(body.leg, _LegMore(body.model, body.headless))
            case events.PromptSeen() as body:
                self._note_prompt(body, at)
            case events.LegEnded(leg):
                self._count_unseen(leg, at)
            case events.SignalSeen() as body if body.decides and is_limit(body):
                self._count_unseen(body.leg, at)
                self._note_limit(body, at)
            case events.SessionRested(why, until, assumed=assumed):
                _end_rest(self._rests, at)
                self._rests.append(_Rest(at, "" if assumed else until, why=_clean(why)))
            case _:
                pass
        self._note_state(session, at)

    def _note_time(self, at: datetime) -> None:
        self._was_set_back = self._was_set_back or at < self._before
        is_idle = self._turn is None and not self._is_handing_over()
        if is_idle and (at - self._before).total_seconds() > _SHORTEST_GAP_S:
            self._idle.append((self._before, at))
        self._before = at
        self._begin, self._last = min(self._begin, at), max(self._last, at)

    def _is_handing_over(self) -> bool:
        return self._session is not None and self._session.handoff is not None

    def _note_prompt(self, body: events.PromptSeen, at: datetime) -> None:
        leg = self._legs.get(body.leg)
        if leg is None:
            return
        last = leg.turns[-1] if leg.turns else None
        asked_at = min(parse_moment(body.asked_at) or at, at)
        if last is not None and (last.end is None or asked_at <= last.end):
            last.prompt = last.prompt or make_title(body.text)
            return
        self._count_unseen(body.leg, at)
        leg.waiting = _Turn(0, asked_at, prompt=make_title(body.text))

    def _count_unseen(self, leg_id: str, at: datetime) -> None:
        """Count the prompt that waits in the leg as a turn: it was over before anybody saw it begin."""
        leg = self._legs.get(leg_id)
        turn = leg.waiting if leg is not None else None
        if leg is None or turn is None or self._turn is not None:
            return
        limits = self._limits.get(self._session.agent, ()) if self._session is not None else ()
        end = next((rest.begin for rest in limits if rest.begin >= turn.begin), at)
        self._turns += 1
        turn.number, turn.end, leg.waiting = self._turns, max(end, turn.begin), None
        leg.turns.append(turn)

    def _note_limit(self, body: events.SignalSeen, at: datetime) -> None:
        """Begin the agent's rest; further sources of the same limit only change when it ends."""
        rests = self._limits.setdefault(body.agent, [])
        last = rests[-1] if rests else None
        until = parse_moment(last.until) if last is not None else None
        if last is None or last.end is not None or (until is not None and until <= at):
            rests.append(_Rest(at, body.until, scope=body.scope, model=body.model))
            return
        later = parse_moment(body.until)
        if later is not None and (until is None or later > until):
            last.until = body.until

    def _note_state(self, session: Session, at: datetime) -> None:
        leg = session.leg
        if session.state in _AT_WORK and leg is not None:
            self._begin_turn(leg.id, at)
            _end_rest(self._limits.get(leg.agent, ()), at)
        elif self._turn is not None:
            self._turn.end, self._turn = max(at, self._turn.begin), None
        if session.state is not State.RESTING:
            _end_rest(self._rests, at)

    def _begin_turn(self, leg_id: str, at: datetime) -> None:
        if self._turn is not None:
            return
        leg = self._legs[leg_id]
        self._turns += 1
        self._turn = _Turn(self._turns, at, prompt=leg.waiting.prompt if leg.waiting is not None else "")
        leg.waiting = None
        leg.turns.append(self._turn)

    def build(
        self,
        usage: Mapping[str, TimelineUsage] | None = None,
        windows: Mapping[str, tuple[WindowUsed, ...]] | None = None,
        bounds: TimelineBounds | None = None,
    ) -> TimelineTold | None:
        """Return the timeline so far, `None` for a journal without its first event.

        `usage` is by leg, `windows` are by agent, as they are now. Without `bounds` nothing is left out.
        """
        session = self._session
        if session is None:
            return None
        records = [
            (number, record)
            for number, record in enumerate(self._history.legs, start=1)
            if record.agent != IMPORTED
        ]
        shown = records[-bounds.legs :] if bounds is not None else records
        known = usage or {}
        begin = self._begin if len(shown) == len(records) else min(record.began_at for _, record in shown)
        unit = self._find_unit(shown, begin, bounds)
        lanes = self._build_lanes(records, shown, known, windows or {}, unit)
        handoffs = [_build_handoff(record) for record in self._history.records]
        listed = handoffs[-bounds.handoffs :] if bounds is not None else handoffs
        idle_s, gaps = self._find_gaps(begin)
        return TimelineTold(
            session=session.id,
            begin=begin.isoformat(),
            last=self._last.isoformat(),
            is_over=session.living_leg is None,
            is_busy=self._turn is not None or self._is_handing_over(),
            clock_was_set_back=self._was_set_back,
            idle_s=round(idle_s, 3),
            turn_count=self._turns,
            legs_left_out=len(records) - len(shown),
            handoffs_left_out=len(handoffs) - len(listed),
            lanes=lanes,
            handoffs=tuple(listed),
            rests=tuple(_build_rest(rest, self._last) for rest in self._rests if rest.begin >= begin),
            gaps=gaps,
            usage=sum_usage(known.get(record.id, UNKNOWN_USAGE) for _, record in records),
        )

    def _build_lanes(
        self,
        records: Sequence[tuple[int, LegRecord]],
        shown: Sequence[tuple[int, LegRecord]],
        usage: Mapping[str, TimelineUsage],
        windows: Mapping[str, tuple[WindowUsed, ...]],
        unit: timedelta | None,
    ) -> tuple[TimelineLane, ...]:
        """Return a lane for each agent that worked or met a limit, in the order in which they did first."""
        begin = min((record.began_at for _, record in shown), default=self._begin)
        agents = dict.fromkeys([*(record.agent for _, record in records), *self._limits])
        return tuple(
            TimelineLane(
                agent=agent,
                legs=tuple(
                    _build_leg(number, record, self._legs[record.id], usage, unit)
                    for number, record in shown
                    if record.agent == agent
                ),
                rests=tuple(
                    _build_rest(rest, self._last)
                    for rest in self._limits.get(agent, ())
                    if len(shown) == len(records) or rest.begin >= begin
                ),
                windows=windows.get(agent, ()),
                leg_count=sum(record.agent == agent for _, record in records),
                turn_count=sum(
                    len(self._legs[record.id].turns) for _, record in records if record.agent == agent
                ),
                usage=sum_usage(
                    usage.get(record.id, UNKNOWN_USAGE) for _, record in records if record.agent == agent
                ),
            )
            for agent in agents
        )

    def _find_unit(
        self, shown: Sequence[tuple[int, LegRecord]], begin: datetime, bounds: TimelineBounds | None
    ) -> timedelta | None:
        """Return within which time turns are merged; `None` if there are few enough."""
        count = sum(len(self._legs[record.id].turns) for _, record in shown)
        return None if bounds is None or count <= bounds.turns else (self._last - begin) / bounds.turns

    def _find_gaps(self, begin: datetime) -> tuple[float, tuple[TimelineGap, ...]]:
        """Return from which length in s on idle stretches are drawn short, and the longest that are.

        That is half the length of all that is not idle. Where the clock was set back, stretches overlap, and
        none is cut out.
        """
        idle = [] if self._was_set_back else [one for one in self._idle if one[0] >= begin]
        at_work_s = (self._last - begin).total_seconds() - sum(
            (until - since).total_seconds() for since, until in idle
        )
        least_s = max(_SHORTEST_GAP_S, at_work_s / 2)
        gaps = [one for one in idle if (one[1] - one[0]).total_seconds() > least_s]
        longest = sorted(gaps, key=lambda one: one[1] - one[0])[-_MOST_GAPS:]
        return least_s, tuple(
            TimelineGap(begin=since.isoformat(), end=until.isoformat()) for since, until in sorted(longest)
        )


def build_timeline(
    journal: Iterable[events.Event],
    usage: Mapping[str, TimelineUsage] | None = None,
    windows: Mapping[str, tuple[WindowUsed, ...]] | None = None,
) -> TimelineTold | None:
    """Return the whole timeline of a journal; raise ImpossibleEventError if that contradicts itself."""
    fold = TimelineFold()
    for event in journal:
        fold.hear(event)
    return fold.build(usage, windows)


def _end_rest(rests: Sequence[_Rest], at: datetime) -> None:
    if rests and rests[-1].end is None:
        rests[-1].end = max(at, rests[-1].begin)


def _build_leg(
    number: int,
    record: LegRecord,
    more: _LegMore,
    usage: Mapping[str, TimelineUsage],
    unit: timedelta | None,
) -> TimelineLeg:
    turns = more.turns if unit is None else _merge_turns(more.turns, unit)
    return TimelineLeg(
        leg=record.id,
        number=number,
        begin=record.began_at.isoformat(),
        end=_render_end(record.began_at, record.ended_at),
        how=record.how,
        model=more.model,
        headless=more.headless,
        resumes=record.resumes,
        handoff=record.handoff,
        turn_count=len(more.turns),
        turns=tuple(
            TimelineTurn(
                number=turn.number,
                count=turn.count,
                begin=turn.begin.isoformat(),
                end=_render_end(turn.begin, turn.end),
                prompt=turn.prompt,
            )
            for turn in turns
        ),
        usage=usage.get(record.id, UNKNOWN_USAGE),
    )


def _merge_turns(turns: Sequence[_Turn], unit: timedelta) -> list[_Turn]:
    """Return the turns with those that began within one `unit` of each other as one, without a prompt."""
    merged: list[_Turn] = []
    for turn in turns:
        last = merged[-1] if merged else None
        if last is not None and turn.begin - last.begin <= unit:
            end = max(turn.end, last.end or turn.end) if turn.end is not None else None
            merged[-1] = _Turn(last.number, last.begin, end, "", last.count + 1)
        else:
            merged.append(turn)
    return merged


def _clean(text: str) -> str:
    return " ".join(clean_text(text[:_MOST_WHY]).split())


def _render_end(begin: datetime, end: datetime | None) -> str:
    return max(begin, end).isoformat() if end is not None else ""


def _build_rest(rest: _Rest, last: datetime) -> TimelineRest:
    """Build the rest; an agent's ends with its reset, if that has passed by the `last` moment known."""
    until = parse_moment(rest.until)
    end = rest.end
    if rest.scope and until is not None and until <= (end or last):
        end = max(until, rest.begin)
    return TimelineRest(
        begin=rest.begin.isoformat(),
        end=end.isoformat() if end is not None else "",
        until=until.isoformat() if until is not None else "",
        scope=rest.scope,
        model=rest.model,
        why=rest.why,
    )


def _build_handoff(record: HandoffRecord) -> TimelineHandoff:
    return TimelineHandoff(
        handoff=record.id,
        from_agent=record.from_agent,
        to_agent=record.to_agent,
        from_leg=record.from_leg,
        to_leg=record.legs[-1] if record.legs else "",
        reason=_clean(record.reason.replace("_", " ")),
        why=_clean(record.why),
        status=record.status.value,
        begin=record.began_at.isoformat(),
        end=_render_end(record.began_at, record.ended_at),
    )
