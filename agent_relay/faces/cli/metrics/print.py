"""Prints a report of metrics: tables, small pictures, CSV, and what the figures leave out."""

import sys
from collections.abc import Mapping, Sequence
from datetime import date

import msgspec

from agent_relay.domain.quick_json import render_json
from agent_relay.faces.cli.metrics.table import drop_empty, get_width, is_plain_output, render_tables
from agent_relay.faces.cli.metrics.view import COLUMNS, HEADERS, build_row, list_cells
from agent_relay.faces.cli.printing import print_json, print_lines, warn
from agent_relay.logic.metrics.by import By
from agent_relay.logic.metrics.figures import draw_bar, draw_line, render_count
from agent_relay.logic.metrics.row import Row
from agent_relay.system.metrics import Gathered

_BAR_WIDTH = 30
_SHOWN_PROBLEMS = 5


class Report(msgspec.Struct, frozen=True):
    """Rows with their labels by key, their total, what they were made of, and where prices are from.

    With `is_all` they are about this machine, else about where the command runs, or about one session.
    """

    by: By
    rows: Sequence[Row]
    total: Row
    labels: Mapping[str, str]
    gathered: Gathered
    source: str
    newest: date | None
    is_all: bool = False

    def build_view(self) -> dict[str, object]:
        """All of it for JSON."""
        return {
            "by": self.by,
            "rows": [build_row(row, self.labels[row.key]) for row in self.rows],
            "total": build_row(self.total, "total"),
            "prices": {"source": self.source, "newest": self.newest.isoformat() if self.newest else None},
            "skipped_lines": self.gathered.read.skipped,
            "problems": self.gathered.problems,
        }


def print_view(report: Report) -> None:
    """All of it on standard output as `print_json` has it, by what is loaded here anyway."""
    view = report.build_view()
    try:
        text = msgspec.json.format(render_json(view), indent=2)
    except msgspec.DecodeError:
        # A folder whose name is not UTF-8, which Python's own reader takes and this one does not.
        return print_json(view)
    sys.stdout.write(text + "\n")
    return None


def print_csv(report: Report) -> None:
    """The rows as CSV on standard output; what could not be read is told on standard error."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report.rows:
        view = build_row(row, report.labels[row.key])
        writer.writerow([_flatten(view[column]) for column in COLUMNS])
    for line in _tell_unread(report.gathered):
        warn(line)


def _flatten(value: object) -> object:
    """A cell: lists and tables as words, a formula nobody meant as text."""
    if isinstance(value, dict):
        value = " ".join(f"{name}={count}" for name, count in value.items())
    elif isinstance(value, list):
        value = " ".join(str(one) for one in value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return f"'{value}"
    return value


def print_report(report: Report) -> None:
    """Tables, a picture, and what the figures leave out."""
    rows, labels, by = report.rows, report.labels, report.by
    if not rows:
        unread = _tell_unread(report.gathered)
        far = ", as far as it could be read" if unread else ""
        more = [] if report.is_all else ["All of this machine's: agent-relay metrics --all"]
        print_lines(f"Nothing was used {'on this machine' if report.is_all else 'here'}{far}.", *more)
        print_lines(*(["", *unread] if unread else []))
        return
    cells = [[labels[row.key], *list_cells(row)] for row in rows]
    headers, cells = drop_empty((by, *HEADERS), cells, ["total", *list_cells(report.total)])
    sys.stdout.write(render_tables(headers, cells, width=get_width()))
    plain = is_plain_output()
    if by == "day":
        line = draw_line([row.bill.tokens for row in rows], is_plain=plain)
        print_lines(*(["", f"tokens a day  {line}"] if line else []))
    elif len(rows) > 1:
        most, width = max(row.bill.tokens for row in rows), max(map(len, labels.values()))
        bars = [
            f"{labels[row.key]:{width}}  {draw_bar(row.bill.tokens, most, _BAR_WIDTH, is_plain=plain)}"
            for row in rows
        ]
        print_lines("", "tokens", *(bar.rstrip() for bar in bars))
    _print_notes(report)


def _print_notes(report: Report) -> None:
    """What the figures leave out, in a line each."""
    unpriced = report.total.bill.unpriced
    notes = [
        f"Money: list prices by {report.source}" + (f", newest of {report.newest}." if report.newest else ".")
    ]
    if unpriced:
        known = ", ".join(f"{name} ({render_count(count)})" for name, count in sorted(unpriced.items()))
        notes.append(f"No price is known for the tokens of: {known}.")
    if report.total.untold:
        notes.append(
            f"Legs that left no transcript, so that what they used is not known: {report.total.untold}."
        )
    print_lines("", *notes, *_tell_unread(report.gathered))


def _tell_unread(gathered: Gathered) -> list[str]:
    """What could not be read, in a line each."""
    skipped, problems = gathered.read.skipped, gathered.problems[:_SHOWN_PROBLEMS]
    lines = [f"Lines that could not be read: {skipped}."] if skipped else []
    rest = len(gathered.problems) - len(problems)
    return [*lines, *problems, *([f"And {rest} more that could not be read."] if rest else [])]
