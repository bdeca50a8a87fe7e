"""`agent-relay metrics`: tokens, money, turns and time over sessions, from files alone."""

import io
import os
import re
import sys
import time
from collections.abc import Mapping
from contextlib import redirect_stdout
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Annotated, TextIO, get_args

import typer

from agent_relay.domain.errors import WrongUseError
from agent_relay.faces.cli.metrics.print import Report, print_csv, print_report
from agent_relay.faces.cli.metrics.question import build_question
from agent_relay.faces.cli.metrics.view import name_row
from agent_relay.faces.cli.printing import print_json
from agent_relay.faces.cli.typed import Function, run_one
from agent_relay.logic.metrics.rows import QUARTER_MS, By, Question, sum_rows
from agent_relay.logic.metrics.work import to_ms
from agent_relay.system.folders import get_folders
from agent_relay.system.kept_reports import keep_report
from agent_relay.system.metrics import Wanted, gather_metrics
from agent_relay.system.metrics_looked import Looked
from agent_relay.system.prices import PriceList, load_prices
from agent_relay.system.usage_crew import count_hands

_SINCE = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


_words: ContextVar[list[str]] = ContextVar("words")


def run(words: list[str]) -> int:
    """The exit status of `agent-relay metrics`, everything read; its report is kept where that can be."""
    _words.set(words)
    return run_one(metrics, words, name="metrics")


def metrics(
    session: Annotated[str, typer.Argument(help="Only this one: the beginning or end of its id.")] = "",
    *,
    chain: Annotated[
        bool, typer.Option("--chain", help="Also the sessions it goes back to, or went on in.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All agents' sessions on this machine.")] = False,
    by: Annotated[str, typer.Option("--by", help="Rows: session, leg, agent, model or day.")] = "session",
    since: Annotated[str, typer.Option("--since", help="Only what came later: 12h, 7d, 2w or a date.")] = "",
    agent: Annotated[str, typer.Option("--agent", help="Only this agent's work.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {rows: [...], total: {...}, prices: {...}}.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As CSV, the fields of the JSON's rows.")] = False,
) -> None:
    """What the work has cost: tokens, money at list prices, turns, time, handoffs, limits, changed lines.

    Of this repository's sessions, those agents keep themselves included; read from the agents' own records
    and our journals, without a daemon and without the network. A turn that ended at a limit has failed.
    """
    if (everything and (session or chain)) or (as_json and as_csv):
        raise WrongUseError(
            "metrics: these options do not go together", hint="See: agent-relay metrics --help"
        )
    began_ns, environ = time.time_ns(), Looked(os.environ)
    wanted = Wanted(session, is_chain=chain, is_all=everything)
    report = _report(wanted, _parse_by(by), since, agent, environ)
    heard = Heard(sys.stdout)
    with redirect_stdout(heard):
        if as_csv:
            print_csv(report)
        elif as_json:
            print_json(report.build_view())
        else:
            print_report(report)
    gathered, text = report.gathered, "".join(heard.parts)
    # Since so long ago is another moment next time.
    if gathered.is_lasting and not _SINCE.fullmatch(since):
        place, question = get_folders().reports, build_question(_words.get([]))
        keep_report(
            place, question, text, paths=gathered.looked, names=environ.names, began_ns=began_ns,
            places=gathered.places,
        )  # fmt: skip


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


def _report(wanted: Wanted, by: By, since: str, agent: str, environ: Mapping[str, str]) -> Report:
    now = datetime.now(UTC)
    since_ms = _parse_since(since, now)
    gathered = gather_metrics(
        get_folders(), wanted, cwd=os.getcwd(), environ=environ, now=now,
        hands=count_hands(), meanwhile=load_prices,
    )  # fmt: skip
    prices = PriceList()
    question = Question(
        by, prices.get_rates, name_day, since=since_ms, agent=agent, is_ours_only=gathered.is_ours_only
    )
    rows, total = sum_rows(gathered.works, gathered.natives, question)
    works = {work.session: work for work in gathered.works}
    labels = {row.key: name_row(row, by, works) for row in rows}
    newest = prices.find_newest(now.date())
    return Report(by, rows, total, labels, gathered, prices.source, newest, is_all=wanted.is_all)


@lru_cache(maxsize=100_000)
def _name_quarter(quarter: int) -> str:
    """The day by the machine's zone; every zone's offset is a whole number of quarter hours."""
    return datetime.fromtimestamp(quarter * QUARTER_MS / 1000, UTC).astimezone().date().isoformat()


def name_day(at: int) -> str:
    """The user's day of a moment in epoch ms, ISO."""
    return _name_quarter(at // QUARTER_MS)


def _parse_by(text: str) -> By:
    for known in get_args(By):
        if text == known:
            found: By = known
            return found
    raise WrongUseError(f"there are no rows by {text[:20]!r}", hint=f"Known: {', '.join(get_args(By))}")


def _parse_since(text: str, now: datetime) -> int:
    """The moment in epoch ms, 0 for none: so long ago, or the beginning of a day here."""
    if not text:
        return 0
    match = _SINCE.fullmatch(text)
    try:
        at = now - int(match[1]) * _UNITS[match[2]] if match else datetime.fromisoformat(text)
        return to_ms(at if at.tzinfo else at.astimezone())
    except (ValueError, OverflowError, OSError):
        raise WrongUseError(
            f"{text[:30]!r} is no time since when", hint="Say 12h, 7d, 2w or a date such as 2026-11-20"
        ) from None


FUNCTIONS: dict[str, Function] = {"": metrics}
"""For the generated page of commands."""
