"""`agent-relay metrics`: gather what work has cost, and print it as tables, JSON or CSV."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

import msgspec

from agent_relay.domain.errors import ExitCode
from agent_relay.domain.protocol.json_text import render_json
from agent_relay.faces.cli.options import OptionParser, ParsedOptions, UsageError
from agent_relay.faces.render.day_bars import draw_days
from agent_relay.faces.render.output import (
    EMPTY_CELL,
    drop_empty,
    get_width,
    is_plain_output,
    print_json,
    print_lines,
    render_tables,
    warn,
)
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.usage.aggregation import QUARTER_MS, Question, sum_rows
from agent_relay.usage.gather import Gathered, Wanted, check_agent, gather_metrics
from agent_relay.usage.session_work import SessionWork, to_ms
from agent_relay.usage.table_format import (
    GROUPINGS,
    Grouping,
    draw_bar,
    render_cost,
    render_count,
    render_span,
)
from agent_relay.usage.totals import MetricsRow, PriceList

HELP = f"""usage: agent-relay metrics [SESSION] [--chain|--all] [--by WHAT] [--since WHEN] [--agent A]
                           [--json|--csv]

What work has cost: tokens, money at list prices, turns, time, handoffs, limits, changed lines. Of this
repository's sessions, also those that agents keep themselves; read from the agents' own records and our
journals, without a daemon and without the network. A turn that ended at a limit counts as failed.

  SESSION       only this one: the beginning or end of its id
  --chain       also the sessions it goes back to, or went on in
  --all         all agents' sessions on this machine
  --by WHAT     rows: {", ".join(GROUPINGS[:-1])} or {GROUPINGS[-1]} (default: {GROUPINGS[0]});
                day also draws tokens and cost as bars, days without usage included
  --since WHEN  only what came later: 12h, 7d, 2w or a date
  --agent A     only this agent's work
  --json        as JSON: {{"rows": [...], "total": {{...}}, "prices": {{...}}}}
  --csv         as CSV, the fields of the JSON's rows
"""
_PARSER = OptionParser(
    "metrics", flags=("--chain", "--all", "--json", "--csv"), values=("--by", "--since", "--agent"), most=1
)
_SINCE = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}
_BAR_WIDTH = 30
_SHOWN_PROBLEMS = 5


class MetricsReport(msgspec.Struct, frozen=True):
    """Rows with their labels by key, their total, and the figures they were made of.

    With `is_all` they are about this machine, else about where the command runs, or about one session.
    `source` is whose prices are used, `newest` the day of the newest one. `uses` are by handoff, if rows are.
    """

    by: Grouping
    rows: Sequence[MetricsRow]
    total: MetricsRow
    labels: Mapping[str, str]
    gathered: Gathered
    source: str
    newest: date | None
    is_all: bool = False
    uses: Mapping[str, Mapping[str, object]] = msgspec.field(default_factory=dict)


def run_metrics(words: list[str]) -> int:
    """Run `agent-relay metrics`; return its exit status."""
    found = parse_options(words)
    if found.wants_help:
        sys.stdout.write(HELP)
        return ExitCode.DONE
    (session,) = found.arguments or ("",)
    report = build_report(
        Wanted(session, is_chain="--chain" in found.flags, is_all="--all" in found.flags),
        by=_parse_by(found.values.get("--by", "session")),
        since=found.values.get("--since", ""),
        agent=found.values.get("--agent", ""),
    )
    if "--csv" in found.flags:
        print_csv(report)
    elif "--json" in found.flags:
        print_view(report)
    else:
        print_report(report)
    return ExitCode.DONE


def parse_options(words: list[str]) -> ParsedOptions:
    """Return what the words say; raise UsageError for wrong ones, and for two that exclude each other."""
    found = _PARSER.parse(words)
    if found.wants_help:
        return found
    given = {*found.flags, *(["SESSION"] if any(found.arguments) else [])}
    for one, other in (("SESSION", "--all"), ("--chain", "--all"), ("--json", "--csv")):
        if {one, other} <= given:
            raise UsageError(f"{one} and {other} cannot be used together", command="metrics")
    return found


def build_report(wanted: Wanted, *, by: Grouping, since: str, agent: str) -> MetricsReport:
    """Gather what is wanted; raise UsageError for an impossible `since`, WrongUseError for no such agent."""
    now = datetime.now(UTC)
    since_ms = _parse_since(since, now)
    gathered = gather_metrics(get_folders(), wanted, cwd=get_cwd(), environ=os.environ, now=now)
    if agent:
        check_agent(gathered, agent, get_folders(), cwd=get_cwd())
    prices = PriceList()
    question = Question(
        by, prices.get_rates, name_day, since=since_ms, agent=agent, is_ours_only=gathered.is_ours_only
    )
    rows, total = sum_rows(gathered.works, gathered.natives, question)
    works = {work.session: work for work in gathered.works}
    labels = {row.key: name_row(row, by, works) for row in rows}
    newest = prices.find_newest(now.date())
    uses = _read_uses(gathered) if by == "handoff" else {}
    return MetricsReport(by, rows, total, labels, gathered, prices.source, newest, wanted.is_all, uses)


def _read_uses(gathered: Gathered) -> Mapping[str, Mapping[str, object]]:
    from agent_relay.usage.packet_uses import read_gathered_uses

    return read_gathered_uses(gathered, get_folders(), os.environ)


def _parse_by(text: str) -> Grouping:
    for known in GROUPINGS:
        if text == known:
            return known
    raise UsageError(f"invalid --by {text[:20]!r}", hint=f"Known: {', '.join(GROUPINGS)}", command="metrics")


def _parse_since(text: str, now: datetime) -> int:
    """Return the moment in epoch ms, 0 for an empty text; raise UsageError if it is none.

    The text is an age (12h, 7d, 2w) or an ISO date or moment, in the user's zone unless it names one.
    """
    if not text:
        return 0
    match = _SINCE.fullmatch(text)
    try:
        at = now - int(match[1]) * _UNITS[match[2]] if match else datetime.fromisoformat(text)
        # One without a zone is local: unlike `astimezone`, its timestamp is right where midnight is skipped.
        return to_ms(at)
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"invalid --since {text[:30]!r}",
            hint="Write 12h, 7d, 2w or a date such as 2026-11-20",
            command="metrics",
        ) from None


COLUMNS = (
    "key", "label", "agents", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens",
    "reasoning_tokens", "total_tokens", "answers", "cost_usd", "cost_is_whole", "unpriced_tokens", "turns",
    "failed_turns", "wall_s", "active_s", "waiting_s", "handoffs", "limits", "failovers", "failover_mean_s",
    "failover_max_s", "lines_added", "lines_removed", "legs_without_transcript", "first_at", "last_at",
    "relay_tokens", "packet_use",
)  # fmt: skip
"""Columns of a row, in JSON and CSV; absent figures are null and empty."""


def build_row(row: MetricsRow, label: str, use: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return one row under `COLUMNS`; `use` is what the successor did with the packet of a handoff's row.

    `cost_usd` is a decimal as text, null if no price is known for it. If no leg of the row left a
    transcript, what it used is not known, and null.
    """
    bill, cost = row.bill, row.bill.cost
    used: dict[str, object] = {
        "input_tokens": bill.input,
        "cached_tokens": bill.cached,
        "cache_write_tokens": bill.cache_write,
        "output_tokens": bill.output,
        "reasoning_tokens": bill.reasoning,
        "total_tokens": bill.tokens,
        "answers": bill.answers,
        "cost_usd": None if cost is None else format(cost.normalize(), "f"),
    }
    return {
        "key": row.key,
        "label": label,
        "agents": row.agents,
        **(dict.fromkeys(used) if row.lacks_usage else used),
        "cost_is_whole": not bill.unpriced and not row.untold,
        "unpriced_tokens": dict(sorted(bill.unpriced.items())),
        "turns": row.turns,
        "failed_turns": row.failed,
        "wall_s": _seconds(row.wall_ms),
        "active_s": _seconds(row.active_ms),
        "waiting_s": _seconds(row.waiting_ms),
        "handoffs": row.handoffs,
        "limits": row.limits,
        "failovers": len(row.failovers_ms),
        "failover_mean_s": _seconds(_mean(row.failovers_ms)),
        "failover_max_s": _seconds(max(row.failovers_ms, default=None)),
        "lines_added": row.added,
        "lines_removed": row.removed,
        "legs_without_transcript": row.untold,
        "first_at": _moment(row.first),
        "last_at": _moment(row.last),
        "relay_tokens": row.relay_tokens,
        "packet_use": use,
    }


HEADERS = (
    "input", "cached", "written", "output", "reasoning", "cost", "turns", "failed", "wall", "active",
    "waiting", "handoffs", "limits", "failover", "lines",
)  # fmt: skip


def list_cells(row: MetricsRow) -> list[str]:
    """Return the cells of a row under `HEADERS`; `-` for what is unknown or does not apply."""
    bill = row.bill
    counts = (bill.input, bill.cached, bill.cache_write, bill.output, bill.reasoning)
    used = [
        *(render_count(count) for count in counts),
        render_cost(bill.cost, is_whole=not bill.unpriced and not row.untold),
    ]
    return [
        *([EMPTY_CELL] * len(used) if row.lacks_usage else used),
        *(render_count(count) if row.turns else EMPTY_CELL for count in (row.turns, row.failed)),
        *(render_span(length) for length in (row.wall_ms, row.active_ms, row.waiting_ms)),
        *(render_count(count) if count else EMPTY_CELL for count in (row.handoffs, row.limits)),
        render_span(_mean(row.failovers_ms)),
        f"+{render_count(row.added)} -{render_count(row.removed)}"
        if row.added or row.removed
        else EMPTY_CELL,
    ]


def name_row(row: MetricsRow, by: Grouping, works: Mapping[str, SessionWork]) -> str:
    """Return the row's label for people.

    It is the end of the id and the agents for a session or leg of ours, the beginning of the native id and
    the agent for a native session, and the key for all others.
    """
    work = works.get(row.key)
    if by == "session" and work is not None:
        return f"{row.key[-8:]} {'>'.join(row.agents)}"
    if by in ("leg", "handoff") and ":" not in row.key:
        return f"{row.key[-8:]} {'>'.join(row.agents)}"
    agent, colon, native = row.key.partition(":")
    return f"{native[:13]} {agent}" if colon and by in ("session", "leg") else row.key


def _mean(lengths: Sequence[int]) -> int | None:
    return sum(lengths) // len(lengths) if lengths else None


def _seconds(length_ms: int | None) -> float | None:
    return None if length_ms is None else length_ms / 1000


def _moment(at: int) -> str | None:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat() if at else None


def print_view(report: MetricsReport) -> None:
    """Print the report as JSON, as `print_json` would, but with msgspec, which is loaded already."""
    view = {
        "by": report.by,
        "rows": [build_row(row, report.labels[row.key], report.uses.get(row.key)) for row in report.rows],
        "total": build_row(report.total, "total"),
        "prices": {"source": report.source, "newest": report.newest.isoformat() if report.newest else None},
        "skipped_lines": report.gathered.read.skipped,
        "problems": report.gathered.problems,
    }
    try:
        text = msgspec.json.format(render_json(view), indent=2)
    except msgspec.DecodeError:
        # A folder whose name is not UTF-8, which Python's own reader takes and this one does not.
        return print_json(view)
    sys.stdout.write(text + "\n")
    return None


def print_csv(report: MetricsReport) -> None:
    """Print the rows as CSV; report on standard error what could not be read."""
    import csv

    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in report.rows:
        view = build_row(row, report.labels[row.key], report.uses.get(row.key))
        writer.writerow([_flatten(view[column]) for column in COLUMNS])
    for line in _list_unread(report.gathered):
        warn(line)


def _flatten(value: object) -> object:
    """Return a CSV cell: lists and tables as words, and text that begins like a formula quoted."""
    if isinstance(value, dict):
        value = " ".join(f"{name}={count}" for name, count in value.items())
    elif isinstance(value, list):
        value = " ".join(str(one) for one in value)
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@"):
        return f"'{value}"
    return value


def print_report(report: MetricsReport) -> None:
    """Print the tables, a chart, and what the figures leave out."""
    rows, labels, by = report.rows, report.labels, report.by
    if not rows:
        unread = _list_unread(report.gathered)
        far = ", as far as it could be read" if unread else ""
        more = [] if report.is_all else ["All of this machine's: agent-relay metrics --all"]
        print_lines(f"No usage was found {'on this machine' if report.is_all else 'here'}{far}.", *more)
        print_lines(*(["", *unread] if unread else []))
        return
    cells = [[labels[row.key], *list_cells(row)] for row in rows]
    headers, cells = drop_empty((by, *HEADERS), cells, ["total", *list_cells(report.total)])
    sys.stdout.write(render_tables(headers, cells, width=get_width()))
    plain = is_plain_output()
    if by == "day":
        days = draw_days(rows, width=get_width(), is_plain=plain)
        print_lines(*(["", *days] if days else []))
    elif len(rows) > 1:
        most, width = max(row.bill.tokens for row in rows), max(map(len, labels.values()))
        bars = [
            f"{labels[row.key]:{width}}  {draw_bar(row.bill.tokens, most, _BAR_WIDTH, is_plain=plain)}"
            for row in rows
        ]
        print_lines("", "tokens", *(bar.rstrip() for bar in bars))
    _print_uses(report)
    _print_notes(report)


def _print_uses(report: MetricsReport) -> None:
    """Print what successors did with their packets, a line each, if rows are handoffs."""
    lines = [
        f"{report.labels[key]}  {use['text']}" for key, use in report.uses.items() if key in report.labels
    ]
    print_lines(*(["", "how successors used their packets", *lines] if lines else []))


def _print_notes(report: MetricsReport) -> None:
    """Print what the figures leave out, one line each."""
    unpriced = report.total.bill.unpriced
    notes = [
        f"Money: list prices by {report.source}" + (f", newest of {report.newest}." if report.newest else ".")
    ]
    if unpriced:
        known = ", ".join(f"{name} ({render_count(count)})" for name, count in sorted(unpriced.items()))
        notes.append(f"No price is known for the tokens of: {known}.")
    if report.total.relay_tokens:
        own = render_count(report.total.relay_tokens)
        notes.append(f"Tokens used by relay's own requests for handoff documents: {own}.")
    if report.total.untold:
        notes.append(
            f"Legs that left no transcript, so that what they used is not known: {report.total.untold}."
        )
    print_lines("", *notes, *_list_unread(report.gathered))


def _list_unread(gathered: Gathered) -> list[str]:
    """Return what could not be read, one line each."""
    skipped, problems = gathered.read.skipped, gathered.problems[:_SHOWN_PROBLEMS]
    lines = [f"Lines that could not be read: {skipped}."] if skipped else []
    rest = len(gathered.problems) - len(problems)
    return [*lines, *problems, *([f"And {rest} more that could not be read."] if rest else [])]


@lru_cache(maxsize=100_000)
def _name_quarter(quarter: int) -> str:
    """Return the day by the machine's zone; every zone's offset is a whole number of quarter hours.

    `quarter` is the number of quarter hours since the epoch.
    """
    return date.fromtimestamp(quarter * QUARTER_MS // 1000).isoformat()  # noqa: DTZ012 - that zone is meant


def name_day(at: int) -> str:
    """Return the ISO date, in the user's zone, of a moment in epoch ms."""
    return _name_quarter(at // QUARTER_MS)
