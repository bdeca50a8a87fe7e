"""Keep a view current in two threads: one follows sessions, one reads tokens, money and plans."""

import os
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.catalog import load_adapters
from agent_relay.domain.documents.adapter import Transcript
from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.protocol.timeline import UsageDay
from agent_relay.domain.protocol.watch_output import TokensUsed, WatchPlanStep
from agent_relay.domain.session import Leg, Session
from agent_relay.faces.cli.metrics import name_day
from agent_relay.faces.render.day_bars import list_days
from agent_relay.faces.watch.view import Figures, View
from agent_relay.faces.watch.watcher import WatchedSessions, Watcher
from agent_relay.sources.native_sessions import ConversationOwner, find_transcript
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.system.disk.folders import Folders
from agent_relay.system.failures import start_thread
from agent_relay.system.processes import is_alive
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Wanted, gather_metrics
from agent_relay.usage.timeline_usage import (
    build_usage,
    read_windows_by_agent,
    render_decimal,
    sum_by_leg,
)
from agent_relay.usage.totals import Bill, MetricsRow, PriceList

_MOST_DAYS = 60


class FiguresReader:
    """Reads the figures of sessions; for one thread. Plans are cached while a transcript is unchanged.

    `days` is what was used by day, as last read: all that is watched, also without relay.
    """

    def __init__(self, folders: Folders, environ: Mapping[str, str]) -> None:
        self._folders = folders
        self._environ = environ
        self._prices: PriceList | None = None
        self._plans: dict[str, tuple[tuple[int, int], tuple[WatchPlanStep, ...], str]] = {}
        self.days: tuple[UsageDay, ...] = ()

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
        rows = self._read_rows(wanted, natives, cwd=cwd, now=now)
        windows = read_windows_by_agent(self._folders.usage_windows, now)
        for session in sessions:
            native = natives.get(session.leg.id) if session.leg is not None else None
            plan, model = (
                self._read_plan(session.leg, native, adapters[session.root])
                if session.leg is not None and native is not None
                else ((), "")
            )
            own = {leg.id: rows[leg.id] for leg in session.legs if leg.id in rows}
            bill = Bill()
            for row in own.values():
                bill.merge(row.bill)
            tokens = build_tokens(bill) if bill.answers else None
            usage = {leg: build_usage(row) for leg, row in own.items()}
            found[session.id] = Figures(tokens, plan, model, usage, windows)
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

    def _read_rows(
        self, wanted: Wanted, natives: Mapping[str, NativeSession], *, cwd: str, now: datetime
    ) -> dict[str, MetricsRow]:
        """Return what each leg used, by its id, and remember the days."""
        try:
            gathered = gather_metrics(self._folders, wanted, cwd=cwd, environ=self._environ, now=now)
        except RelayError:
            return {}
        if self._prices is None:
            self._prices = PriceList()
        for leg in (leg for work in gathered.works for leg in work.legs):
            if not leg.natives and leg.leg in natives:
                leg.natives.append(natives[leg.leg].native_id)
        rates = self._prices.get_rates
        rows, _ = sum_rows(gathered.works, gathered.natives, Question("day", rates, name_day))
        self.days = build_days(rows)
        return sum_by_leg(gathered, rates)

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
    return TokensUsed(
        input=bill.input,
        cached=bill.cached,
        cache_write=bill.cache_write,
        output=bill.output,
        reasoning=bill.reasoning,
        total=bill.tokens,
        cost_usd=render_decimal(bill.cost),
        cost_is_whole=not bill.unpriced,
    )


def build_days(rows: Sequence[MetricsRow]) -> tuple[UsageDay, ...]:
    """Build the newest days, those without usage between them included; `rows` are by day."""
    return tuple(
        UsageDay(day=line.day, empty_days=line.empty, tokens=0, cost_usd="0", cost_is_whole=True)
        if line.row is None
        else UsageDay(
            day=line.day,
            tokens=None if line.row.lacks_usage else line.row.bill.tokens,
            cost_usd="" if line.row.lacks_usage else render_decimal(line.row.bill.cost),
            cost_is_whole=not line.row.bill.unpriced and not line.row.untold,
        )
        for line in list_days(rows)[-_MOST_DAYS:]
    )


def _get_mark(path: str) -> tuple[int, int]:
    """Return what changes when the transcript does; a database's log, too."""
    found = os.stat(path)
    try:
        log = os.stat(f"{path}-wal")
    except OSError:
        return found.st_size, found.st_mtime_ns
    return found.st_size + log.st_size, max(found.st_mtime_ns, log.st_mtime_ns)


MOST_OFTEN_S = 0.25
"""Shortest time between two views, in seconds, however fast an agent paints."""
_VIEWS_SHARE = 10
"""Views take at most one part in this many of a processor's time, however many sessions paint."""
_FIGURES_S = 2.0
_UNTOLD_S = 30.0
"""Seconds between readings of figures if no daemon reports that an agent did something."""
_FIGURES_SHARE = 50
"""Reading figures takes at most one part in this many of the time, whatever a reading costs."""


class LatestView:
    """The newest view, for one reader that waits with `select`; one not taken is replaced, not queued."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._heard, self._told = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._view: View | None = None
        self._error: BaseException | None = None
        self._is_new = False

    def fileno(self) -> int:
        """Return a descriptor that is readable once there is something to take."""
        return self._heard

    def put(self, view: View) -> None:
        """Make `view` the newest."""
        with self._turn:
            self._view = view
            self._ring()

    def fail(self, error: BaseException) -> None:
        """Announce that no newer view will come: the next `take` raises `error`."""
        with self._turn:
            self._error = error
            self._ring()

    def take(self) -> View | None:
        """Return the newest view if it was not taken yet, else `None`. Raise the error passed to `fail`."""
        with self._turn:
            if not self._is_new:
                return None
            os.read(self._heard, 1)
            self._is_new = False
            if self._error is not None:
                raise self._error
            return self._view

    def _ring(self) -> None:
        if not self._is_new:
            self._is_new = True
            os.write(self._told, b"!")


class WatchLoop:
    """Keeps a view of `watched` current; the newest is in what `start` returns."""

    def __init__(
        self, folders: Folders, watcher: Watcher, watched: WatchedSessions, *, environ: Mapping[str, str]
    ) -> None:
        self._watcher = watcher
        self._figures = FiguresReader(folders, environ)
        # All of a working tree also for one of its sessions: the journal names some natives late.
        self._wanted = Wanted(is_all=not watched.root)
        self._cwd = watched.root or "/"
        self._latest = LatestView()
        self._turn = threading.Lock()
        self._told: View | None = None
        self._read_at = 0.0
        self._is_stale = threading.Event()
        self._is_over = threading.Event()

    def start(self) -> LatestView:
        """Start both threads; return where views come from until `stop`, or the end of the process.

        The end of the process does not wait for the threads.
        """
        start_thread("watch", self._follow, on_failure=self._fail)
        start_thread("figures", self._go_on_reading, on_failure=self._fail)
        return self._latest

    def stop(self) -> None:
        """Stop both threads; no view comes after this."""
        self._is_over.set()
        self._is_stale.set()

    def _fail(self, error: BaseException) -> None:
        if not self._is_over.is_set():
            self._latest.fail(error)

    def _follow(self) -> None:
        self._watcher.connect()
        while not self._is_over.is_set():
            began, spent = time.monotonic(), time.thread_time()
            self._show()
            # On a busy machine a view takes longer, but no more of the processor.
            cost_s = time.thread_time() - spent
            is_told = self._watcher.wait(self._pause)
            if is_told or began - self._read_at > _UNTOLD_S:
                self._is_stale.set()
            self._pause(max(MOST_OFTEN_S, _VIEWS_SHARE * cost_s) - (time.monotonic() - began))

    def _go_on_reading(self) -> None:
        while not self._is_over.is_set():
            self._is_stale.clear()
            self._read_at = began = time.monotonic()
            self.read_figures()
            self._show()
            cost_s = time.monotonic() - began
            self._pause(max(_FIGURES_S, _FIGURES_SHARE * cost_s))
            self._is_stale.wait()

    def read_figures(self) -> None:
        """Read what agents' own records say now, and give it to the watcher."""
        now = datetime.now(UTC)
        figures = self._figures.read(self._watcher.sessions(), self._wanted, cwd=self._cwd, now=now)
        self._watcher.give(figures, self._figures.days)

    def _show(self) -> None:
        with self._turn:
            view = self._watcher.read()
            if not self._is_over.is_set() and view != self._told:
                self._told = view
                self._latest.put(view)

    def _pause(self, length_s: float) -> None:
        if length_s > 0:
            self._is_over.wait(length_s)
