"""What agents' own records say of sessions under watch: tokens and money, and the plan of who is at work."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.watch_event import PlanStep, TokensUsed
from agent_relay.logic.metrics.rates import Bill
from agent_relay.logic.metrics.rows import Question, sum_rows
from agent_relay.logic.watching.view import Figures
from agent_relay.system.adapters import LoadedAdapter, load_adapters
from agent_relay.system.folders import Folders
from agent_relay.system.metrics import Wanted, gather_metrics
from agent_relay.system.prices import PriceList
from agent_relay.system.transcripts import find_transcript, read_facts


class FiguresReader:
    """Reads the figures of sessions; for one thread. Plans of transcripts that have not changed are kept."""

    def __init__(self, folders: Folders, environ: Mapping[str, str]) -> None:
        self._folders = folders
        self._environ = environ
        self._prices: PriceList | None = None
        self._plans: dict[str, tuple[tuple[int, int], tuple[PlanStep, ...], str]] = {}

    def read(
        self, sessions: Iterable[Session], wanted: Wanted, *, cwd: str, now: datetime
    ) -> dict[str, Figures]:
        """By session's id. What cannot be read is left out; raises ConfigurationError."""
        bills = self._read_bills(wanted, cwd=cwd, now=now)
        found = {}
        adapters: dict[str, Mapping[str, LoadedAdapter]] = {}
        for session in sessions:
            if session.root not in adapters:
                loaded = load_adapters(self._folders, root=session.root)
                adapters[session.root] = {str(name): one for name, one in loaded.items()}
            leg, known = session.leg, adapters[session.root]
            plan, model = self._read_plan(session, leg, known) if leg is not None else ((), "")
            bill = bills.get(session.id)
            tokens = build_tokens(bill) if bill is not None and bill.answers else None
            found[session.id] = Figures(tokens, plan, model)
        return found

    def _read_bills(self, wanted: Wanted, *, cwd: str, now: datetime) -> dict[str, Bill]:
        try:
            gathered = gather_metrics(self._folders, wanted, cwd=cwd, environ=self._environ, now=now)
        except RelayError:
            return {}
        if self._prices is None:
            self._prices = PriceList()
        question = Question("session", self._prices.get_rates, _no_day, is_ours_only=True)
        rows, _ = sum_rows(gathered.works, gathered.natives, question)
        return {row.key: row.bill for row in rows}

    def _read_plan(
        self, session: Session, leg: Leg, adapters: Mapping[str, LoadedAdapter]
    ) -> tuple[tuple[PlanStep, ...], str]:
        """The leg's plan in its last known status, and the model its agent names."""
        loaded = adapters.get(leg.agent)
        spec = loaded.adapter.transcript if loaded is not None else None
        if spec is None or not leg.native_id:
            return (), ""
        try:
            path = leg.transcript or self._find_path(session, leg, adapters)
            if not path:
                return (), ""
            mark = _get_mark(path)
            known = self._plans.get(leg.id)
            if known is None or known[0] != mark:
                facts = read_facts(spec.reader, path, native_id=leg.native_id, agent=leg.agent)
                steps = tuple(PlanStep(text=step.text, status=step.status) for step in facts.plan)
                known = self._plans[leg.id] = (mark, steps, facts.model)
        except (RelayError, OSError):
            return (), ""
        return known[1], known[2]

    def _find_path(self, session: Session, leg: Leg, adapters: Mapping[str, LoadedAdapter]) -> str:
        spec = adapters[leg.agent].adapter.transcript
        if spec is None:
            return ""
        home = self._environ.get("HOME", "")
        found = find_transcript(
            spec, native_id=leg.native_id, cwd=session.cwd, home=home, environ=self._environ
        )
        return found.path if found is not None else ""


def build_tokens(bill: Bill) -> TokensUsed:
    """A bill as it is told."""
    cost = bill.cost
    return TokensUsed(
        input=bill.input,
        cached=bill.cached,
        cache_write=bill.cache_write,
        output=bill.output,
        reasoning=bill.reasoning,
        total=bill.tokens,
        cost_usd="" if cost is None else format(cost.normalize(), "f"),
        cost_is_whole=not bill.unpriced,
    )


def _get_mark(path: str) -> tuple[int, int]:
    """What changes when the transcript does; a database's log, too."""
    found = os.stat(path)
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return found.st_size, found.st_mtime_ns
    return found.st_size + log.st_size, max(found.st_mtime_ns, log.st_mtime_ns)


def _no_day(_at: int) -> str:
    return ""
