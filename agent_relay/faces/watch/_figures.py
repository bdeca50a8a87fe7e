"""Read what agents' own records say of sessions under watch: tokens and money, and the current plan."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.catalog import load_adapters
from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.protocol.watch_output import TokensUsed, WatchPlanStep
from agent_relay.domain.session import Leg, Session
from agent_relay.faces.watch.view import Figures
from agent_relay.sources.native_sessions import ConversationOwner, find_transcript
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.system.disk.folders import Folders
from agent_relay.system.processes import is_alive
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Wanted, gather_metrics
from agent_relay.usage.prices import PriceList
from agent_relay.usage.totals import Bill


class FiguresReader:
    """Reads the figures of sessions; for one thread. Plans are cached while a transcript is unchanged."""

    def __init__(self, folders: Folders, environ: Mapping[str, str]) -> None:
        self._folders = folders
        self._environ = environ
        self._prices: PriceList | None = None
        self._plans: dict[str, tuple[tuple[int, int], tuple[WatchPlanStep, ...], str]] = {}

    def read(
        self, sessions: Sequence[Session], wanted: Wanted, *, cwd: str, now: datetime
    ) -> dict[str, Figures]:
        """Return the figures by session id, without what cannot be read. Raise ConfigurationError."""
        found = {}
        adapters: dict[str, Mapping[str, LoadedAdapter]] = {}
        for root in {session.root for session in sessions}:
            loaded = load_adapters(self._folders, root=root)
            adapters[root] = {str(name): one for name, one in loaded.items()}
        natives = self._find_natives(sessions, adapters)
        bills = self._read_bills(wanted, natives, cwd=cwd, now=now)
        for session in sessions:
            native = natives.get(session.leg.id) if session.leg is not None else None
            plan, model = (
                self._read_plan(session.leg, native, adapters[session.root])
                if session.leg is not None and native is not None
                else ((), "")
            )
            bill = bills.get(session.id)
            tokens = build_tokens(bill) if bill is not None and bill.answers else None
            found[session.id] = Figures(tokens, plan, model)
        return found

    def _find_natives(
        self, sessions: Sequence[Session], adapters: Mapping[str, Mapping[str, LoadedAdapter]]
    ) -> dict[str, NativeSession]:
        """Return the agent's own session of each newest leg, by the leg's id.

        One that the journal does not name yet is found by its folder. If several such legs of one agent are
        in one folder, none of theirs is returned, because they cannot be told apart.
        """
        legs = [(session, session.leg) for session in sessions if session.leg is not None]
        nameless = Counter((leg.agent, session.cwd) for session, leg in legs if not leg.native_id)
        named = {leg.native_id for session in sessions for leg in session.legs if leg.native_id}
        found = {}
        for session, leg in legs:
            loaded = adapters[session.root].get(leg.agent)
            spec = loaded.adapter.transcript if loaded is not None else None
            is_lost = not leg.native_id and (
                leg.is_over or not leg.was_busy or nameless[leg.agent, session.cwd] > 1
            )
            if spec is None or is_lost:
                continue
            native = self._find_native(session, leg, spec)
            if native is not None and (leg.native_id or native.native_id not in named):
                found[leg.id] = native
        return found

    def _find_native(self, session: Session, leg: Leg, spec: Transcript) -> NativeSession | None:
        if leg.native_id and leg.transcript:
            return NativeSession(leg.transcript, leg.native_id, session.cwd, "", leg.starting_at)
        try:
            return find_transcript(
                spec,
                native_id=leg.native_id,
                cwd=session.cwd,
                since=None if leg.native_id else leg.starting_at,
                home=self._environ.get("HOME", ""),
                environ=self._environ,
                owner=ConversationOwner(leg.child_pid if is_alive(leg.child_pid, leg.child_born) else 0),
            )
        except (RelayError, OSError):
            return None

    def _read_bills(
        self, wanted: Wanted, natives: Mapping[str, NativeSession], *, cwd: str, now: datetime
    ) -> dict[str, Bill]:
        try:
            gathered = gather_metrics(self._folders, wanted, cwd=cwd, environ=self._environ, now=now)
        except RelayError:
            return {}
        if self._prices is None:
            self._prices = PriceList()
        for leg in (leg for work in gathered.works for leg in work.legs):
            if not leg.natives and leg.leg in natives:
                leg.natives.append(natives[leg.leg].native_id)
        question = Question("session", self._prices.get_rates, _no_day, is_ours_only=True)
        rows, _ = sum_rows(gathered.works, gathered.natives, question)
        return {row.key: row.bill for row in rows}

    def _read_plan(
        self, leg: Leg, native: NativeSession, adapters: Mapping[str, LoadedAdapter]
    ) -> tuple[tuple[WatchPlanStep, ...], str]:
        """Return the leg's plan in its last known status, and the model its agent names."""
        spec = adapters[leg.agent].adapter.transcript
        if spec is None:
            return (), ""
        try:
            mark = _get_mark(native.path)
            known = self._plans.get(leg.id)
            if known is None or known[0] != mark:
                facts = read_facts(spec.reader, native.path, native_id=native.native_id, agent=leg.agent)
                steps = tuple(WatchPlanStep(text=step.text, status=step.status) for step in facts.plan)
                known = self._plans[leg.id] = (mark, steps, facts.model)
        except (RelayError, OSError):
            return (), ""
        return known[1], known[2]


def build_tokens(bill: Bill) -> TokensUsed:
    """Build the tokens to show from a bill."""
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
    """Return what changes when the transcript does; a database's log, too."""
    found = os.stat(path)
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return found.st_size, found.st_mtime_ns
    return found.st_size + log.st_size, max(found.st_mtime_ns, log.st_mtime_ns)


def _no_day(_at: int) -> str:
    return ""
