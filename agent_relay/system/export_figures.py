"""Reads the figures that are exported: everything on this machine, from our journals and agents' records."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from agent_relay.logic.exporting.figure import Figure
from agent_relay.logic.exporting.figures import build_figures
from agent_relay.logic.metrics.by import By
from agent_relay.logic.metrics.row import Row
from agent_relay.logic.metrics.rows import Question, sum_rows
from agent_relay.logic.watching.view import View
from agent_relay.system.folders import Folders
from agent_relay.system.metrics import Gathered, Wanted, gather_metrics
from agent_relay.system.prices import PriceList


class ExportReader:
    """For one thread; prices are loaded once.

    `unread` says what the newest figures leave out because it cannot be read; empty where that is nothing.
    """

    def __init__(self, folders: Folders, environ: Mapping[str, str]) -> None:
        self._folders = folders
        self._environ = environ
        self._prices = PriceList()
        self.unread = ""

    def read(self, view: View, now: datetime) -> list[Figure]:
        """Every figure as of now; `view` is all sessions. Raises RelayError where nothing can be read."""
        gathered = gather_metrics(self._folders, Wanted(is_all=True), cwd="/", environ=self._environ, now=now)
        self.unread = _tell_unread(gathered.problems)
        agents = self._sum(gathered, "agent", "")
        models = {row.key: self._sum(gathered, "model", row.key) for row in agents}
        return build_figures(agents, models, view)

    def _sum(self, gathered: Gathered, by: By, agent: str) -> list[Row]:
        question = Question(by, self._prices.get_rates, _no_day, agent=agent)
        rows, _ = sum_rows(gathered.works, gathered.natives, question)
        return [row for row in rows if row.key]


def _tell_unread(problems: Sequence[str]) -> str:
    """The first of what could not be read, and how much more there is."""
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    return f"{problems[0]}{more}" if problems else ""


def _no_day(_at: int) -> str:
    return ""
