"""The figures that are exported, in one list for every exporter; labels are few and bounded."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from agent_relay.domain.session import State
from agent_relay.logic.exporting.figure import Figure, Labels
from agent_relay.logic.exporting.names import OTHER, label, shorten_path
from agent_relay.logic.metrics.rates import Bill
from agent_relay.logic.metrics.row import Row
from agent_relay.logic.watching.view import View

MOST_AGENTS = 32
MOST_MODELS = 64
"""Above so many names the rest is called `other`: every name is a series somebody has to store."""


def build_figures(agents: Sequence[Row], models: Mapping[str, Sequence[Row]], view: View) -> list[Figure]:
    """Every figure: `agents` are the rows by agent, `models` those by model of each agent."""
    rows = _name_rows(agents)
    return [*_build_work(rows), *_build_tokens(agents, models), *_build_now(view)]


def _build_work(rows: Sequence[tuple[str, Row]]) -> Iterable[Figure]:
    by_agent: tuple[tuple[str, str, str, Callable[[Row], float]], ...] = (
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


def _build_tokens(agents: Sequence[Row], models: Mapping[str, Sequence[Row]]) -> Iterable[Figure]:
    """Tokens and money by agent and model; the models used most keep their names."""
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


def _name_rows(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """The rows with the label of each: the agents that used most keep their names."""
    used = sorted(rows, key=lambda row: (-row.bill.tokens, row.key))
    kept = _keep_names((row.key for row in used), MOST_AGENTS)
    return [(kept.get(row.key, OTHER), row) for row in rows]


def _keep_names(names: Iterable[str], most: int, *, is_path: bool = False) -> dict[str, str]:
    """The first `most` of the names, each with what is shown of it; with `is_path` they may be files."""
    kept: dict[str, str] = {}
    for name in names:
        if len(kept) < most:
            kept[name] = label(shorten_path(name) if is_path else name)
    return kept


def _add(pairs: Iterable[tuple[Labels, float]]) -> dict[Labels, float]:
    """The values by their labels, those of the same labels added up."""
    found: dict[Labels, float] = {}
    for labels, value in pairs:
        found[labels] = found.get(labels, 0.0) + value
    return found
