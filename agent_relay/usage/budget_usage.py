"""Count how much of each of the user's budgets is used, from files alone.

A budget counts for a session's legs, or for a day and everything on this machine. Counting is repeated while
a leg lives, so a bug of ours may come back with every round: `ErrorDeduplicator` reports each kind once.
"""

import traceback
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, time, timedelta, tzinfo

import msgspec

from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.limits import Budget, Mark, Spending
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.session import Session
from agent_relay.session.fold import ImpossibleEventError
from agent_relay.store.journal import read_events
from agent_relay.transcripts.usage_readers import USAGE_READERS
from agent_relay.transcripts.usage_records import list_answers, list_columns
from agent_relay.usage._dedupe import Native
from agent_relay.usage._session_work_fold import fold_work
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.native_usage import Damage, describe_damage, read_usage
from agent_relay.usage.record_files import UsageSpec
from agent_relay.usage.session_work import SessionWork, to_ms
from agent_relay.usage.table_format import render_cost
from agent_relay.usage.totals import Bill, PriceList, Rate, Rates

_NAMED = 3
"""Most models without a known price that are named."""
_NAME_LENGTH = 40
_NO_GAPS: Mapping[str, str] = {}


class Day(msgspec.Struct, frozen=True):
    """The user's day from `begin` to `end` (aware), by its date."""

    name: str
    begin: datetime
    end: datetime


def find_day(now: datetime, zone: tzinfo) -> Day:
    """Return the day it is in the zone."""
    today = now.astimezone(zone).date()
    begin, end = (datetime.combine(date, time(), zone) for date in (today, today + timedelta(days=1)))
    return Day(today.isoformat(), begin, end)


def count_spending(
    budgets: Sequence[Budget],
    work: SessionWork | None,
    natives: Sequence[Native],
    rates: Rates,
    day: Day,
    *,
    gaps: Mapping[str, str] = _NO_GAPS,
    damages: Sequence[Damage] = (),
) -> tuple[Spending, ...]:
    """Return how much of each budget is used, in order; `work` is the current session's, `None` if unknown.

    `gaps` say by agent why some of what it used could not be counted; `damages` are the unreadable lines of
    its records.
    """
    session = _sum_session(work, natives, rates)
    found = []
    for budget in budgets:
        since = _find_begins(budget, work, {one.agent for one in damages}, day)
        gap = next((why for agent, why in gaps.items() if budget.agent in ("", agent)), "")
        gap = gap or describe_damage(damages, since)
        if budget.per == "day":
            spending = _judge(budget, _sum_day(budget.agent, natives, rates, day), gap)
            found.append(_date(spending, day))
        else:
            found.append(_judge(budget, session.get(budget.agent, Bill()), gap))
    return tuple(found)


def tell_uncounted(budgets: Sequence[Budget], why: str, day: Day) -> tuple[Spending, ...]:
    """Return for every budget that it is not counted, and `why`."""
    told = [
        Spending(one.name, Mark.UNCOUNTED, f"{one.name} is not watched: {why}", one.agent, one.then)
        for one in budgets
    ]
    return tuple(
        _date(one, day) if budget.per == "day" else one for budget, one in zip(budgets, told, strict=True)
    )


def _date(spending: Spending, day: Day) -> Spending:
    return Spending(
        spending.budget, spending.mark, spending.text, spending.agent, spending.then, day.name,
        day.end.isoformat(),
    )  # fmt: skip


def _sum_session(work: SessionWork | None, natives: Sequence[Native], rates: Rates) -> dict[str, Bill]:
    """Return by agent what its legs used in the session, and under the empty name what all used."""
    if work is None:
        return {}
    named = {native for leg in work.legs for native in leg.natives}
    own = [native for native in natives if native.session in named]
    question = Question("agent", rates, is_ours_only=True)
    rows, total = sum_rows([work], own, question)
    return {"": total.bill} | {row.key: row.bill for row in rows}


def _sum_day(agent: str, natives: Sequence[Native], rates: Rates, day: Day) -> Bill:
    bill, begin, end = Bill(), to_ms(day.begin), to_ms(day.end)
    for native in natives:
        if agent in ("", native.agent):
            moments = list_columns(native.used).at
            first, behind = bisect_left(moments, begin), bisect_left(moments, end)
            # Few sessions were at work on the day, and only theirs are looked at one by one.
            for used in list_answers(native.used)[first:behind] if first < behind else ():
                bill.add(used, rates)
    return bill


def _find_begins(
    budget: Budget, work: SessionWork | None, agents: Collection[str], day: Day
) -> dict[str, int]:
    """Return by agent from when on (epoch in ms) its use counts for the budget.

    Agents whose use does not count are left out.
    """
    if budget.per == "day":
        begins = dict.fromkeys(agents, to_ms(day.begin))
    else:
        legs = sorted(work.legs if work is not None else (), key=lambda leg: -leg.begin)
        begins = {leg.agent: leg.begin for leg in legs}
    return {agent: begin for agent, begin in begins.items() if budget.agent in {"", agent}}


def _judge(budget: Budget, bill: Bill, gap: str) -> Spending:
    mark = _find_mark(budget, bill)
    if mark is Mark.OPEN and gap:
        mark = Mark.UNCOUNTED
    return Spending(budget.name, mark, _tell(budget, bill, mark, gap), budget.agent, budget.then)


def _find_mark(budget: Budget, bill: Bill) -> Mark:
    """Return the mark; what has no known price costs nothing here, but such a budget is never `OPEN`."""
    if budget.dollars is None:
        part = 100 * bill.tokens / budget.tokens
    else:
        part = float(100 * (bill.cost or 0) / budget.dollars)
    if part >= 100:  # noqa: PLR2004 - percent
        return Mark.SPENT
    if part >= budget.warn:
        return Mark.WARN
    return Mark.UNPRICED if bill.unpriced and budget.dollars is not None else Mark.OPEN


def _tell(budget: Budget, bill: Bill, mark: Mark, gap: str) -> str:
    """Render it in words, without a capital: `$4.12 of your budget of $5.00 a day is used`."""
    unpriced = "" if budget.dollars is None else _tell_unpriced(bill)
    if mark is Mark.UNPRICED:
        return "; ".join(
            part for part in (f"{unpriced}, so {budget.name} cannot be kept for them", gap) if part
        )
    if mark is Mark.UNCOUNTED:
        return f"not all that counts for {budget.name} can be counted: {gap}"
    more = "; ".join(part for part in (unpriced, gap) if part)
    if budget.dollars is None:
        used = f"{bill.tokens:,} tokens"
    else:
        used = render_cost(bill.cost or None, is_whole=True)
    used = f"{'at least ' if more else ''}{used}"
    told = f"{budget.name} is used up ({used})" if mark is Mark.SPENT else f"{used} of {budget.name} is used"
    return f"{told}; {more}" if more else told


def _tell_unpriced(bill: Bill) -> str:
    """Say which models' prices are unknown; empty if none."""
    if not bill.unpriced:
        return ""
    names = sorted(bill.unpriced)
    shown = ", ".join(name[:_NAME_LENGTH] for name in names[:_NAMED])
    rest = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"no price is known for {sum(bill.unpriced.values()):,} tokens of {shown}{rest}"


class BudgetCounter:
    """Counts `budgets`; finds the agents' records by `specs` and keeps what was read in the index."""

    def __init__(self, budgets: Sequence[Budget], specs: Mapping[str, Transcript], index: str) -> None:
        self._budgets = budgets
        self._specs = {agent: UsageSpec(**msgspec.structs.asdict(spec)) for agent, spec in specs.items()}
        self._index = index
        self._prices: PriceList | None = None

    def count(
        self, session: Session, *, now: datetime, zone: tzinfo, environ: Mapping[str, str]
    ) -> tuple[Spending, ...]:
        """Return how much of each budget is used for the session, and what keeps it from being counted.

        Raises RelayError if the journal contradicts itself or cannot be read.
        """
        read = read_usage(self._specs, self._index, home=environ.get("HOME", ""), environ=environ)
        journal = get_journal_path(session.root, session.id)
        try:
            work = fold_work(read_events(journal), now)
        except ImpossibleEventError as error:
            raise RelayError(f"{journal} contradicts itself") from error
        unread = {leg.agent for leg in session.legs if not self._is_read(leg.agent)}
        gaps = {agent: f"{agent} leaves no records that can be read" for agent in sorted(unread)} | read.gaps
        return count_spending(
            self._budgets,
            work,
            read.natives,
            self._get_rates,
            find_day(now, zone),
            gaps=gaps,
            damages=read.damages,
        )

    def tell_uncounted(self, why: str, *, now: datetime, zone: tzinfo) -> tuple[Spending, ...]:
        """Return for every budget that it is not counted, and `why`."""
        return tell_uncounted(self._budgets, why, find_day(now, zone))

    def _is_read(self, agent: str) -> bool:
        spec = self._specs.get(agent)
        return spec is not None and spec.reader in USAGE_READERS

    def _get_rates(self, model: str, at_ms: int) -> Sequence[Rate]:
        if all(budget.dollars is None for budget in self._budgets):
            return ()
        if self._prices is None:
            self._prices = PriceList()
        return self._prices.get_rates(model, at_ms)


_MOST_KINDS = 20
"""Most kinds of errors, as many as crash reports are kept: a bug that varies must not push others out."""


class ErrorDeduplicator:
    """The errors of one repeated task; `report` is called once for every kind."""

    def __init__(self, report: Callable[[BaseException], None]) -> None:
        self._report = report
        self._known: set[tuple[object, ...]] = set()

    def note(self, error: Exception) -> None:
        """Report `error` unless one of its kind was: of the same type and raised along the same path."""
        way = traceback.walk_tb(error.__traceback__)
        kind = (type(error), *((frame.f_code, line) for frame, line in way))
        if kind not in self._known and len(self._known) < _MOST_KINDS:
            self._known.add(kind)
            self._report(error)
