"""Makes the report of what was gathered for `agent-relay metrics`, and tells it."""

import io
import sys
from contextlib import redirect_stdout
from datetime import date, datetime
from functools import lru_cache
from typing import TextIO

from agent_relay.faces.cli.metrics.asked import Asked
from agent_relay.faces.cli.metrics.print import Report, print_csv, print_report, print_view
from agent_relay.faces.cli.metrics.view import name_row
from agent_relay.logic.metrics.by import By
from agent_relay.logic.metrics.rows import Question, sum_rows
from agent_relay.logic.metrics.runs import QUARTER_MS
from agent_relay.system.metrics import Gathered
from agent_relay.system.prices import PriceList, load_prices

__all__ = ["Heard", "load_prices", "name_day", "tell"]


def tell(asked: Asked, gathered: Gathered, by: By, since_ms: int, now: datetime) -> str:
    """What is on standard output afterwards: the report in the form asked for."""
    report = _build_report(asked, gathered, by, since_ms, now)
    heard = Heard(sys.stdout)
    with redirect_stdout(heard):
        if asked.as_csv:
            print_csv(report)
        elif asked.as_json:
            print_view(report)
        else:
            print_report(report)
    return "".join(heard.parts)


class Heard(io.TextIOBase):
    """Passes on what is written to `stream`, whose kind it has, and keeps it in `parts`."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self._stream = stream
        self.parts: list[str] = []

    def write(self, text: str, /) -> int:
        """How much was written."""
        self.parts.append(text)
        return self._stream.write(text)

    def flush(self) -> None:
        """The stream has it."""
        self._stream.flush()

    def isatty(self) -> bool:
        """Whether the stream is a terminal."""
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the stubs have it as a variable
        """The stream's."""
        return self._stream.encoding


def _build_report(asked: Asked, gathered: Gathered, by: By, since_ms: int, now: datetime) -> Report:
    prices = PriceList()
    question = Question(
        by, prices.get_rates, name_day, since=since_ms, agent=asked.agent, is_ours_only=gathered.is_ours_only
    )
    rows, total = sum_rows(gathered.works, gathered.natives, question)
    works = {work.session: work for work in gathered.works}
    labels = {row.key: name_row(row, by, works) for row in rows}
    newest = prices.find_newest(now.date())
    return Report(by, rows, total, labels, gathered, prices.source, newest, is_all=asked.everything)


@lru_cache(maxsize=100_000)
def _name_quarter(quarter: int) -> str:
    """The day by the machine's zone; every zone's offset is a whole number of quarter hours."""
    return date.fromtimestamp(quarter * QUARTER_MS // 1000).isoformat()  # noqa: DTZ012 - that zone is meant


def name_day(at: int) -> str:
    """The user's day of a moment in epoch ms, ISO."""
    return _name_quarter(at // QUARTER_MS)
