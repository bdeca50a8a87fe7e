"""Counts what the agents on this machine have used of the user's budgets, from files alone."""

import os
from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo

from agent_relay.domain.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Session
from agent_relay.domain.spending import Budget, Spending
from agent_relay.logic.fold import ImpossibleEventError
from agent_relay.logic.metrics.rates import Rate
from agent_relay.logic.metrics.spent import count_spending, find_day, tell_uncounted
from agent_relay.logic.metrics.work import fold_work
from agent_relay.logic.transcripts.usage.registry import USAGE_READERS
from agent_relay.system.journal import read_events
from agent_relay.system.prices import PriceList
from agent_relay.system.usage import read_usage


class Counter:
    """Counts for `budgets`; the agents' records are found by `specs`, what was read is kept in the index."""

    def __init__(self, budgets: Sequence[Budget], specs: Mapping[str, Transcript], index: str) -> None:
        self._budgets = budgets
        self._specs = specs
        self._index = index
        self._prices: PriceList | None = None

    def count(
        self, session: Session, *, now: datetime, zone: tzinfo, environ: Mapping[str, str]
    ) -> tuple[Spending, ...]:
        """How the budgets stand for the session, and what keeps them from being counted.

        Raises RelayError where nothing tells.
        """
        read = read_usage(self._specs, self._index, home=environ.get("HOME", ""), environ=environ)
        journal = os.path.join(session.root, ".agent-relay", "sessions", session.id, "journal.jsonl")
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
        """That no budget is counted, and `why`."""
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
