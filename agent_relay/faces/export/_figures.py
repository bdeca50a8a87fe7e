"""The figures that are exported, read from our journals and agents' records, for every exporter.

Labels are few and bounded: every label value is a series that somebody has to store.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from agent_relay.domain.protocol.figure import Figure, Labels
from agent_relay.domain.state import State
from agent_relay.faces.export._outbound_filter import OTHER, label, shorten_path
from agent_relay.faces.watch.view import View
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Gathered, Wanted, gather_metrics
from agent_relay.usage.groupings import Grouping
from agent_relay.usage.prices import PriceList
from agent_relay.usage.totals import Bill, MetricsRow

MOST_AGENTS = 32
MOST_MODELS = 64
"""Above this many, names become `other`: every name is a series somebody has to store."""


def build_figures(
    agents: Sequence[MetricsRow], models: Mapping[str, Sequence[MetricsRow]], view: View
) -> list[Figure]:
    """Build every figure: `agents` are the rows by agent, `models` those by model of each agent."""
    rows = _name_rows(agents)
    return [*_build_work(rows), *_build_tokens(agents, models), *_build_now(view)]


def _build_work(rows: Sequence[tuple[str, MetricsRow]]) -> Iterable[Figure]:
    by_agent: tuple[tuple[str, str, str, Callable[[MetricsRow], float]], ...] = (
        ("turns", "{turn}", "Turns, those that failed included.", lambda row: row.turns),
        ("turns_failed", "{turn}", "Turns that ended in an error or at a limit.", lambda row: row.failed),
        ("limits", "{limit}", "Limits that stopped a session.", lambda row: row.limits),
        ("handoffs", "{handoff}", "Handoffs done, by the agent that took over.", lambda row: row.handoffs),
        ("failovers", "{failover}", "Handoffs a limit began.", lambda row: len(row.failovers_ms)),
        (
            "failover_seconds",
            "s",
            "Time from limits to successors at work, added up.",
            lambda row: sum(row.failovers_ms) / 1000,
        ),
        ("wall_seconds", "s", "Time sessions lasted.", lambda row: (row.wall_ms or 0) / 1000),
        ("active_seconds", "s", "Time agents worked.", lambda row: (row.active_ms or 0) / 1000),
        ("waiting_seconds", "s", "Time lost to limits.", lambda row: (row.waiting_ms or 0) / 1000),
    )
    for name, unit, about, read in by_agent:
        values = _add((((agent,), read(row)) for agent, row in rows))
        yield Figure(name, "counter", about, ("agent",), values, unit)
    lines = _add(
        ((agent, change), count)
        for agent, row in rows
        for change, count in (("added", row.added), ("removed", row.removed))
    )
    yield Figure("lines", "counter", "Lines changed.", ("agent", "change"), lines, "{line}")


def _build_tokens(
    agents: Sequence[MetricsRow], models: Mapping[str, Sequence[MetricsRow]]
) -> Iterable[Figure]:
    """Build tokens and money by agent and model; the models used most keep their names."""
    used = Counter[str]()
    for rows in models.values():
        for row in rows:
            used[row.key] += row.bill.tokens
    kept = _keep_names((name for name, _ in used.most_common()), MOST_MODELS, is_path=True)
    names = {row.key: name for name, row in _name_rows(agents)}
    bills = [
        ((names.get(agent, OTHER), kept.get(row.key, OTHER)), row.bill)
        for agent, rows in models.items()
        for row in rows
    ]
    tokens = _add(
        ((*owner, kind), count) for owner, bill in bills for kind, count in _list_kinds(bill) if count
    )
    yield Figure("tokens", "counter", "Tokens used.", ("agent", "model", "kind"), tokens, "{token}")
    owner = ("agent", "model")
    cost = _add((names_of, float(bill.cost)) for names_of, bill in bills if bill.cost is not None)
    about = "US dollars at list prices, as far as prices are known."
    yield Figure("cost_usd", "counter", about, owner, cost, "{USD}")
    unpriced = _add((names_of, sum(bill.unpriced.values())) for names_of, bill in bills if bill.unpriced)
    yield Figure("tokens_unpriced", "counter", "Tokens without a known price.", owner, unpriced, "{token}")


def _list_kinds(bill: Bill) -> tuple[tuple[str, int], ...]:
    return (
        ("input", bill.input),
        ("cached", bill.cached),
        ("cache_write", bill.cache_write),
        ("output", bill.output),
        ("reasoning", bill.reasoning),
    )


def _build_now(view: View) -> Iterable[Figure]:
    states = Counter(one.now.state for one in view.sessions)
    sessions = _add(((state.value,), states[state.value]) for state in State if state is not State.ENDED)
    yield Figure("sessions", "gauge", "Sessions, by state.", ("state",), sessions, "{session}")
    resting = _add(((label(rest.agent), label(rest.scope)), 1.0) for rest in view.resting[:MOST_AGENTS])
    yield Figure(
        "agents_resting", "gauge", "Limits that keep an agent from work now.", ("agent", "scope"), resting
    )
    known = _add([((), float(not view.rests_unknown))])
    yield Figure("resting_known", "gauge", "Whether it is known which agents rest.", (), known, "1")
    windows: dict[Labels, float] = {}
    for one in view.sessions:
        for window in one.now.windows:
            place = label(one.now.agent), label(window.name)
            if place in windows or len(windows) < MOST_AGENTS:
                windows[place] = max(windows.get(place, 0.0), window.used_percent / 100)
    about = "How much of a usage window is used, as agents at work last said."
    yield Figure("window_used_ratio", "gauge", about, ("agent", "window"), windows, "1")
    here = _add([((), float(view.is_daemon_here))])
    yield Figure("daemon_up", "gauge", "Whether agent-relay's daemon runs.", (), here, "1")


def _name_rows(rows: Sequence[MetricsRow]) -> list[tuple[str, MetricsRow]]:
    """Return the rows with the label of each: the agents that used most keep their names."""
    used = sorted(rows, key=lambda row: (-row.bill.tokens, row.key))
    kept = _keep_names((row.key for row in used), MOST_AGENTS)
    return [(kept.get(row.key, OTHER), row) for row in rows]


def _keep_names(names: Iterable[str], most: int, *, is_path: bool = False) -> dict[str, str]:
    """Return the first `most` of the names, each with its label; with `is_path` they may be files."""
    kept: dict[str, str] = {}
    for name in names:
        if len(kept) < most:
            kept[name] = label(shorten_path(name) if is_path else name)
    return kept


def _add(pairs: Iterable[tuple[Labels, float]]) -> dict[Labels, float]:
    """Return the values by their labels, those of the same labels added up."""
    found: dict[Labels, float] = {}
    for labels, value in pairs:
        found[labels] = found.get(labels, 0.0) + value
    return found


class ExportReader:
    """Reads the figures; for one thread. Prices are loaded once.

    `unread` says what the newest figures leave out because it cannot be read; empty if that is nothing.
    """

    def __init__(self, folders: Folders, environ: Mapping[str, str]) -> None:
        self._folders = folders
        self._environ = environ
        self._prices = PriceList()
        self.unread = ""

    def read(self, view: View, now: datetime) -> list[Figure]:
        """Return every figure as of now; `view` is all sessions. Raise RelayError if nothing can be read."""
        gathered = gather_metrics(self._folders, Wanted(is_all=True), cwd="/", environ=self._environ, now=now)
        self.unread = _tell_unread(gathered.problems)
        agents = self._sum(gathered, "agent", "")
        models = {row.key: self._sum(gathered, "model", row.key) for row in agents}
        return build_figures(agents, models, view)

    def _sum(self, gathered: Gathered, by: Grouping, agent: str) -> list[MetricsRow]:
        question = Question(by, self._prices.get_rates, _no_day, agent=agent)
        rows, _ = sum_rows(gathered.works, gathered.natives, question)
        return [row for row in rows if row.key]


def _tell_unread(problems: Sequence[str]) -> str:
    """Return the first of what could not be read, and how much more there is."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


def _no_day(_at: int) -> str:
    return ""
