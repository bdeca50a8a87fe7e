"""Sum what was used into rows: cut it into turns, and find whose work each turn was."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import pairwise

import msgspec

from agent_relay.domain.state import State
from agent_relay.transcripts.usage_records import Columns, list_columns
from agent_relay.usage._dedupe import Native
from agent_relay.usage.session_work import (
    WAITING,
    LegWork,
    RelayRequest,
    SessionWork,
    StateSpan,
    find_leg,
)
from agent_relay.usage.table_format import Grouping
from agent_relay.usage.totals import UNANSWERED, UNNAMED, MetricsRow, Rate, Rates

QUARTER_MS = 900_000
"""Milliseconds of a quarter of an hour: days in every zone, and prices, change only at one."""


class WorkOwner(msgspec.Struct, frozen=True):
    """Whose work something was: a `session` and `leg` of ours, or `agent:native-id` for the user's own."""

    session: str
    leg: str
    agent: str


Run = tuple[WorkOwner, int, int]
"""The owner of some answers or turns, the index of the first, and the index after the last."""


class OwnerFinder:
    """Finds whose work a moment of one native session was; `is_plain` if all is `own`, the user's."""

    def __init__(self, legs: Sequence[tuple[WorkOwner, LegWork]], native: Native) -> None:
        name = f"{native.agent}:{native.session}"
        self.own = WorkOwner(name, name, native.agent)
        self._owners = {leg.leg: owner for owner, leg in legs}
        self._legs = [leg for _, leg in legs]
        self.is_plain = not legs

    def __call__(self, at: int) -> WorkOwner:
        """Return the leg at work at that moment; the user's own if none was."""
        leg = find_leg(self._legs, at) if self._legs else None
        return self.own if leg is None else self._owners[leg.leg]


def cut_runs(moments: Sequence[int], models: Sequence[str], find: OwnerFinder, since: int) -> list[Run]:
    """Return the runs from `since` on, each of one model and owner within a quarter of an hour."""
    runs, is_plain = list[Run](), find.is_plain and len(set(models)) <= 1
    place, size = bisect_left(moments, since), len(moments)
    while place < size:
        at = moments[place]
        # What nothing dates is of no quarter.
        end = bisect_left(moments, (at // QUARTER_MS + 1) * QUARTER_MS if at else 1, place)
        owner, model = find(at), models[place]
        if not is_plain:
            others = (
                one
                for one in range(place + 1, end)
                if find(moments[one]) is not owner or models[one] != model
            )
            end = next(others, end)
        runs.append((owner, place, end))
        place = end
    return runs


class NativeTurn(msgspec.Struct, frozen=True, gc=False):
    """One turn. `active_ms` is the time to the last thing it did; `model` is the first that answered.

    `at` is 0 if nothing dates its prompt: then its length is unknown.
    """

    at: int
    active_ms: int
    is_failed: bool
    model: str = ""


def cut_turns(native: Native, answers: Columns, limits: Sequence[int]) -> list[NativeTurn]:
    """Return the turns in order; those that ended in an error, or at a moment of `limits`, have failed.

    `answers` are the native session's.
    """
    starts = [prompt.at for prompt in native.prompts]
    lasts = list(starts)
    models = [""] * len(starts)
    failed = [False] * len(starts)
    moments, told = answers.at, answers.models
    cuts = [bisect_left(moments, start) for start in starts] + [len(moments)]
    for place, (begin, end) in enumerate(pairwise(cuts)):
        if begin < end:
            lasts[place] = max(moments[begin:end])
            models[place] = told[begin]
        if begin < end and not models[place]:
            models[place] = next((model for model in told[begin:end] if model), "")
    for at in (*(mark.at for mark in native.changes), *(mark.at for mark in native.failures)):
        place = bisect_right(starts, at) - 1
        if place >= 0:
            lasts[place] = max(lasts[place], at)
    for end in (*(mark.at for mark in native.failures), *limits):
        place = bisect_right(starts, end) - 1
        if place >= 0:
            failed[place] = True
    return [
        NativeTurn(start, last - start if start else 0, is_failed, model)
        for start, last, is_failed, model in zip(starts, lasts, failed, models, strict=True)
    ]


DAY_MS = 86_400_000
_LONGEST_MS = 7 * DAY_MS
"""Longest turn, in milliseconds: an answer that suggests a longer one was dated by a wrong clock."""


def _name_no_day(_at: int) -> str:
    return ""


class Question(msgspec.Struct, frozen=True):
    """Rows asked for: `by` which grouping, since when (epoch in ms), of which agent (empty for all).

    `rates` prices models, `day_of` names the user's day of a moment in epoch ms, if rows are days; neither
    changes within a quarter of an hour. `is_ours_only` leaves out work that no leg did.
    """

    by: Grouping
    rates: Rates
    day_of: Callable[[int], str] = _name_no_day
    since: int = 0
    agent: str = ""
    is_ours_only: bool = False


def sum_rows(
    works: Sequence[SessionWork], natives: Sequence[Native], question: Question
) -> tuple[list[MetricsRow], MetricsRow]:
    """Return the rows, in the order of their first moment, and the total row."""
    table = _Table(question)
    table.add_works(works, {native.session for native in natives})
    for native in natives:
        table.add_native(native)
    rows = sorted((row for row in table.rows.values() if row.key), key=lambda row: (row.first, row.key))
    return rows, table.sum_up()


class _Table:
    """The rows by key; the one with an empty key holds what belongs to no row of this grouping."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._legs: dict[str, list[tuple[WorkOwner, LegWork]]] = {}
        self._found: dict[tuple[str, bool, str], MetricsRow | None] = {}
        self._agents = list[str]()
        self._handoffs: dict[str, str] = {}
        self.rows: dict[str, MetricsRow] = {}

    def sum_up(self) -> MetricsRow:
        """Return the total row."""
        total = MetricsRow("total", agents=self._agents)
        for row in self.rows.values():
            total.merge(row)
        return total

    def add_works(self, works: Sequence[SessionWork], told: AbstractSet[str]) -> None:
        """Add what journals record: time, limits, handoffs; `told` are the native sessions found."""
        since = self._question.since
        for work in works:
            agents = {leg.leg: leg.agent for leg in work.legs}
            self._handoffs |= {leg.leg: leg.handoff for leg in work.legs if leg.handoff}
            for span in work.spans:
                if span.state is not State.ENDED and span.end > since:
                    self._add_span(work, agents.get(span.leg, ""), span)
            for leg in work.legs:
                owner = WorkOwner(work.session, leg.leg, leg.agent)
                self._add_leg(owner, leg, told)
                for native in leg.natives:
                    self._legs.setdefault(native, []).append((owner, leg))
            for passing in work.passings:
                owner = WorkOwner(work.session, passing.leg, agents.get(passing.leg, ""))
                row = self._at(owner, passing.at)
                if row is not None:
                    row.handoffs += 1
                    if passing.is_failover:
                        row.failovers_ms.append(passing.took_ms)
            for request in work.requests:
                self._add_request(WorkOwner(work.session, request.leg, request.agent), request)

    def _add_request(self, owner: WorkOwner, request: RelayRequest) -> None:
        model = (request.model or UNNAMED) if self._question.by == "model" else ""
        row = self._at(owner, request.at, model=model)
        if row is not None and any(request.counts):
            rates = self._question.rates(request.model, request.at)
            row.bill.add_all(request.model, [[count] for count in (*request.counts, 0)], rates)
            row.relay_tokens += sum(request.counts[:4])

    def _add_leg(self, owner: WorkOwner, leg: LegWork, told: AbstractSet[str]) -> None:
        for at in leg.limits:
            row = self._at(owner, at)
            if row is not None:
                row.limits += 1
        if not any(native in told for native in leg.natives):
            row = self._at(owner, leg.end)
            if row is not None:
                row.untold += 1

    def add_native(self, native: Native) -> None:
        """Add what one native session holds, each record as the work of the leg that did it."""
        legs = self._legs.get(native.session, [])
        find = OwnerFinder(legs, native)
        limits = [at for _, leg in legs if leg.natives[-1] == native.session for at in leg.limits]
        answers = list_columns(native.used)
        turns = cut_turns(native, answers, limits)
        starts, since = [turn.at for turn in turns], self._question.since
        runs = cut_runs(answers.at, answers.models, find, since)
        turn_runs = cut_runs(starts, [turn.model for turn in turns], find, since)
        self._add_answers(runs, answers)
        for change in native.changes:
            row = self._at(find(change.at), change.at)
            if row is not None:
                row.added += change.added
                row.removed += change.removed
        times = self._add_turns(turn_runs, turns, find.own)
        for at, pieces in ((answers.at, runs), (starts, turn_runs)):
            times += [(at[begin], at[end - 1]) for owner, begin, end in pieces if owner is find.own]
        for begin, end in self._find_own_time(native, find, times):
            row = self._at(find.own, begin)
            if row is not None:
                row.wall_ms = (row.wall_ms or 0) + end - begin

    def _add_answers(self, runs: Sequence[Run], answers: Columns) -> None:
        by_model, parts = (
            self._question.by == "model",
            list[tuple[MetricsRow, str, Sequence[Rate], int, int]](),
        )
        for owner, begin, end in runs:
            first, model = answers.at[begin], answers.models[begin]
            named = (model or UNNAMED) if by_model else ""
            row = self._at(owner, first, last=answers.at[end - 1], model=named)
            if row is None:
                continue
            rates = self._question.rates(model, first)
            last = parts[-1] if parts else None
            # Mostly several quarters of an hour go to one row, and are added up at once.
            goes_on = last and last[0] is row and last[1:3] == (model, rates) and last[4] == begin
            parts.append((row, model, rates, parts.pop()[3] if goes_on else begin, end))
        for row, model, rates, begin, end in parts:
            row.bill.add_all(model, [column[begin:end] for column in answers.counts], rates)

    def _add_turns(
        self, runs: Sequence[Run], all_turns: Sequence[NativeTurn], own: WorkOwner
    ) -> list[tuple[int, int]]:
        """Add the turns; return the working times of `own` turns that went on past midnight."""
        by_model, nights = self._question.by == "model", list[tuple[int, int]]()
        for owner, begin, end in runs:
            turns = all_turns[begin:end]
            first, last, model = turns[0].at, turns[-1], turns[0].model
            named = (model or UNANSWERED) if by_model else ""
            row = self._at(owner, first, last=last.at, model=named)
            if row is None:
                continue
            row.turns += len(turns)
            row.failed += sum(turn.is_failed for turn in turns)
            if owner is own:
                row.active_ms = (row.active_ms or 0) + sum(turn.active_ms for turn in turns)
                # Only the last of a quarter of an hour can have gone on until after it.
                nights += self._share(row, own, last)
        return nights

    def _share(self, row: MetricsRow, own: WorkOwner, turn: NativeTurn) -> list[tuple[int, int]]:
        """Move a turn's time from `row`, which had all of it, to the row of each day; return it by day."""
        end, day_of = turn.at + turn.active_ms, self._question.day_of
        if self._question.by != "day" or turn.active_ms > _LONGEST_MS or day_of(turn.at) == day_of(end):
            return []
        days = list(self._split(turn.at, end))
        for begin, until in days[1:]:
            row.active_ms = (row.active_ms or 0) - (until - begin)
            later = self._at(own, begin) or row
            later.active_ms = (later.active_ms or 0) + until - begin
        return days

    def _add_span(self, work: SessionWork, agent: str, span: StateSpan) -> None:
        owner = WorkOwner(work.session, span.leg, agent)
        for begin, end in self._split(max(span.begin, self._question.since), span.end):
            row = self._at(owner, begin)
            if row is not None:
                length = end - begin
                row.wall_ms = (row.wall_ms or 0) + length
                row.active_ms = (row.active_ms or 0) + (length if span.state is State.BUSY else 0)
                row.waiting_ms = (row.waiting_ms or 0) + (length if span.state in WAITING else 0)

    def _find_own_time(
        self, native: Native, find: OwnerFinder, times: list[tuple[int, int]]
    ) -> list[tuple[int, int]]:
        """Return the time from the first to the last of what no leg did, day by day if rows are days.

        `times` are those of its answers, its prompts and its turns past midnight.
        """
        since, by_day = self._question.since, self._question.by == "day"
        for listed in (native.failures, native.changes):
            times += [(mark.at, mark.at) for mark in listed if mark.at >= since and find(mark.at) is find.own]
        dated = [(first, last) for first, last in times if first]
        begin, end = min(dated, default=(0, 0))[0], max((last for _, last in dated), default=0)
        day_of = self._question.day_of
        if not by_day or day_of(begin) == day_of(end):
            return [(begin, end)] if dated else []
        spans: dict[str, tuple[int, int]] = {}
        for first, last in dated:
            begin, end = spans.get(day_of(first), (first, last))
            spans[day_of(first)] = min(begin, first), max(end, last)
        return list(spans.values())

    def _split(self, begin: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the time, cut at the user's midnights if rows are days."""
        if self._question.by != "day":
            yield begin, end
            return
        day_of = self._question.day_of
        while day_of(begin) != day_of(end):
            low, high = begin, min(end, begin + DAY_MS + 2 * 3_600_000)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if day_of(middle) == day_of(begin) else (low, middle)
            yield begin, high
            begin = high
        yield begin, end

    def _at(self, owner: WorkOwner, at: int, *, last: int = 0, model: str = "") -> MetricsRow | None:
        """Return the row something belongs to, with its moments moved; `None` if it was not asked for.

        `at` and `last` lie within one quarter of an hour; what has no date, `at` 0, moves no row's moments.
        """
        if at < self._question.since:
            return None
        key = self._name(owner, at, model)
        known = owner.agent, owner.session == owner.leg, key
        row = self._found[known] if known in self._found else self._find(known)
        if row is not None:
            if at and (not row.first or at < row.first):
                row.first = at
            row.last = max(row.last, last or at)
        return row

    def _find(self, known: tuple[str, bool, str]) -> MetricsRow | None:
        agent, is_own, key = known
        row = None
        if self._question.agent in ("", agent) and not (is_own and self._question.is_ours_only):
            row = self.rows.setdefault(key, MetricsRow(key))
            for agents in (self._agents, row.agents):
                if agent and agent not in agents:
                    agents.append(agent)
        self._found[known] = row
        return row

    def _name(self, owner: WorkOwner, at: int, model: str) -> str:
        """Return the key of the row; empty for what belongs to no row of this grouping."""
        match self._question.by:
            case "session":
                key = owner.session
            case "leg":
                key = owner.leg
            case "handoff":
                key = self._handoffs.get(owner.leg, "")
            case "agent":
                key = owner.agent
            case "day":
                key = self._question.day_of(at) if at else UNNAMED
            case "model":
                key = model
        return key
