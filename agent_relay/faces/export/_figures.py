"""Read the figures and events that are exported, leave out what anybody wrote, and keep them current."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.protocol.watch_output import EventTold, Figure, Labels
from agent_relay.domain.state import State
from agent_relay.faces.watch.lines import render_unknown_rests
from agent_relay.faces.watch.view import View, list_changes
from agent_relay.faces.watch.watcher import Watcher
from agent_relay.system.disk.folders import Folders
from agent_relay.system.failures import start_thread
from agent_relay.system.net.delivery_report import DeliveryCounter, build_delivery_figures
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Gathered, Wanted, gather_metrics
from agent_relay.usage.table_format import Grouping
from agent_relay.usage.totals import Bill, MetricsRow, PriceList

OTHER = "other"
"""Replaces a name that has none of the shapes."""
_UNKNOWN = "unknown"
_MOST = 80
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:+()-]*[A-Za-z0-9)])?")
_PARTS = re.compile(r"[/\\]|%2f|%5c", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z0-9-](?:[A-Za-z0-9._:+-]{0,79})")


def shorten_path(name: str) -> str:
    r"""Return the last part of a name that may be a path, as that of a local model is; else the name itself.

    `/home/ann/models/llama.gguf` and `C:\models\llama.gguf` become `llama.gguf`, `maker/model` `model`. An
    address with nothing behind its host becomes empty.
    """
    scheme, mark, rest = name.partition("://")
    parts = _PARTS.split(rest if mark else scheme)
    return "" if mark and len(parts) == 1 else parts[-1]


def label(name: str) -> str:
    """Return the first 80 characters if they have the shape of a name, else `other`; `unknown` for none."""
    cut = name[:_MOST].rstrip()
    if not cut:
        return _UNKNOWN
    return cut if _NAME.fullmatch(cut) else OTHER


def is_code(text: str) -> bool:
    """Return whether it is a code, a name or a moment: no free text, and no path."""
    return _CODE.fullmatch(text) is not None


SENT_EVENTS = frozenset(
    {
        "session.created", "session.rested", "session.woke", "session.ended", "leg.starting", "leg.ready",
        "leg.asking", "leg.ended", "signal.seen", "handoff.begun", "handoff.confirmed", "handoff.failed",
        "handoff.cancelled", "return.offered", "turn.ended",
    }
)  # fmt: skip
"""The events that are sent."""


def build_hook_event(told: EventTold) -> dict[str, object] | None:
    """Build the body to send; `None` for an event that is not sent.

    Details are codes, names and moments; anything else does not leave this machine, whoever wrote it. Of a
    model that is a local file only the file's own name does.
    """
    if told.name not in SENT_EVENTS or not is_code(told.session):
        return None
    if told.name == "signal.seen" and told.details.get("decides") != "true":
        return None
    told_of = {**told.details, "model": shorten_path(told.details.get("model", ""))}
    details = {name: text for name, text in told_of.items() if is_code(text)}
    return {
        "schema": "agent-relay/webhook",
        "version": 1,
        "id": f"{told.session}:{told.number}",
        "session": told.session,
        "event": told.name,
        "at": told.at,
        **{name: text for name, text in details.items() if name != "decides"},
    }


MOST_AGENTS = 32
MOST_MODELS = 64
"""Most names; others become `other`: every name is a series somebody has to store."""


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
        question = Question(by, self._prices.get_rates, agent=agent)
        rows, _ = sum_rows(gathered.works, gathered.natives, question)
        return [row for row in rows if row.key]


def _tell_unread(problems: Sequence[str]) -> str:
    """Return the first of what could not be read, and how much more there is."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


_SHARE = 20
"""Reading figures takes at most one part in this many of the time."""
_MOST_OFTEN_S = 0.5


class LatestFigures:
    """The newest figures, for any number of readers in any thread; getting them reads nothing.

    If deliveries are counted, their counts are included, as of the moment of asking.
    """

    def __init__(self) -> None:
        self._figures: Sequence[Figure] = ()
        self.deliveries: tuple[DeliveryCounter, ...] = ()

    def count(self, deliveries: DeliveryCounter) -> None:
        """Include the counts of these deliveries, too."""
        self.deliveries = (*self.deliveries, deliveries)

    def put(self, figures: Sequence[Figure]) -> None:
        """Make these figures the newest."""
        self._figures = tuple(figures)

    def get(self) -> Sequence[Figure]:
        """Return the newest figures; none before the first reading, except counts of deliveries."""
        counts = {one.receiver.key: one.count for one in self.deliveries}
        return (*self._figures, *build_delivery_figures(counts))


class NewEvents:
    """Finds the new events of one view after another, each once: those after `began`, none of the first view.

    A session that comes back into view, as one does that is resumed long after its end, brings all its old
    events: none of those is new.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._before: View | None = None
        self._told: dict[str, int] = {}

    def take(self, after: View) -> Sequence[EventTold]:
        """Return the new events of `after`; none of the first view."""
        before, self._before = self._before, after
        found = [event for event in list_changes(before, after) if isinstance(event, EventTold)]
        news = [event for event in found if before is not None and self._is_news(event)]
        for event in found:
            self._told[event.session] = max(event.number, self._told.get(event.session, 0))
        return news

    def _is_news(self, event: EventTold) -> bool:
        last = self._told.get(event.session)
        return event.number > last if last is not None else datetime.fromisoformat(event.at) >= self._began


class ExportLoop:
    """Reads `reader`'s figures every `interval_s` seconds, and passes on events to `tell` as they happen.

    `warn` is given a line for people if figures can no longer be read and stay as they were, if they leave
    out what cannot be read, or if it is unknown who rests.
    """

    def __init__(
        self, watcher: Watcher, reader: ExportReader, *, interval_s: float, warn: Callable[[str], None]
    ) -> None:
        self._warn = warn
        self.newest = LatestFigures()
        self._watcher = watcher
        self._reader = reader
        self._interval_s = interval_s
        self._failure: BaseException | None = None
        self._unread = ""
        self._unknown = ""

    def read(self) -> None:
        """Read the newest figures as of now. Raise RelayError if they cannot be read."""
        view = self._watcher.read()
        unknown, self._unknown = self._unknown, view.rests_unknown
        if self._unknown not in ("", unknown):
            self._warn(render_unknown_rests(self._unknown))
        self.newest.put(self._reader.read(view, datetime.now(UTC)))
        before, self._unread = self._unread, self._reader.unread
        if self._unread not in ("", before):
            self._warn(f"the figures leave out what cannot be read: {self._unread}")

    def run(self, tell: Callable[[EventTold], None]) -> None:
        """Pass events to `tell`, none from before the call, and never return.

        Raises the error of its thread if that failed.
        """
        start_thread("figures", self._go_on_reading, on_failure=self._fail)
        news = NewEvents(datetime.now(UTC))
        while self._failure is None:
            for event in news.take(self._watcher.read()):
                tell(event)
            began = time.monotonic()
            self._watcher.wait()
            time.sleep(max(0.0, _MOST_OFTEN_S - (time.monotonic() - began)))
        raise self._failure

    def _go_on_reading(self) -> None:
        wait_s, told = self._interval_s, ""
        while True:
            time.sleep(wait_s)
            began, why = time.monotonic(), ""
            try:
                self.read()
            except RelayError as error:
                why = error.sentence
            if why and why != told:
                self._warn(f"the figures are not being updated: {why}")
            told = why
            wait_s = max(self._interval_s, _SHARE * (time.monotonic() - began))

    def _fail(self, error: BaseException) -> None:
        # Figures that stand still would be believed.
        self._failure = error
