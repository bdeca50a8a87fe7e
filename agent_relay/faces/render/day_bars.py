"""List the days of a metrics table, those without usage included, and draw their bars."""

from collections.abc import Sequence
from datetime import date, timedelta

import msgspec

from agent_relay.usage.table_format import draw_bar, render_cost, render_count
from agent_relay.usage.totals import UNNAMED, MetricsRow

_MOST_EMPTY = 7
"""So many days without usage have a line each; a longer stretch has one for all of them."""
_GAP = "  "
_WIDEST_BAR = 30
_LEAST_BAR = 6


class DayLine(msgspec.Struct, frozen=True):
    """One line: a day with its row, or `empty` days without usage (more than one have an empty `day`)."""

    day: str
    row: MetricsRow | None = None
    empty: int = 0


def list_days(rows: Sequence[MetricsRow]) -> list[DayLine]:
    """Return the days from the first to the last; what nothing dates comes at the end.

    `rows` are those of the grouping by day.
    """
    lines: list[DayLine] = []
    last: date | None = None
    for row in sorted((row for row in rows if row.key != UNNAMED), key=lambda row: row.key):
        day = date.fromisoformat(row.key)
        if last is not None:
            lines += _list_empty(last, (day - last).days - 1)
        lines.append(DayLine(row.key, row))
        last = day
    return [*lines, *(DayLine(row.key, row) for row in rows if row.key == UNNAMED)]


def _list_empty(last: date, count: int) -> list[DayLine]:
    if count > _MOST_EMPTY:
        return [DayLine("", None, count)]
    return [DayLine((last + timedelta(days)).isoformat(), None, 1) for days in range(1, count + 1)]


def draw_days(rows: Sequence[MetricsRow], *, width: int, is_plain: bool) -> list[str]:
    """Return a line for each day, with a bar for tokens and one for cost; none for a single day.

    No figure is cut: bars that would not fit into `width` are left out, that of the cost first.
    """
    days = list_days(rows)
    if len(days) < 2:  # noqa: PLR2004 - one day compares with nothing
        return []
    tokens = ["tokens", *(_render_tokens(line.row) for line in days)]
    costs = ["cost", *(_render_cost(line.row) for line in days)]
    label, count, price = max(len(line.day) for line in days), max(map(len, tokens)), max(map(len, costs))
    token_bar, cost_bar = _fit_bars(width - label - count - price - 2 * len(_GAP))
    amounts = [0, *(line.row.bill.tokens if line.row is not None else 0 for line in days)]
    cents = [0, *(_find_cents(line.row) for line in days)]
    lines = []
    for number, line in enumerate([DayLine(""), *days]):
        if line.empty > 1:
            sign = ":" if is_plain else "⋮"
            lines.append(f"{sign.ljust(label)}{_GAP}{render_count(line.empty)} days without usage")
            continue
        parts = [line.day.ljust(label), tokens[number].rjust(count), costs[number].rjust(price)]
        if token_bar:
            bar = draw_bar(amounts[number], max(amounts), token_bar, is_plain=is_plain)
            parts.insert(2, bar.ljust(token_bar))
        if cost_bar:
            parts.append(draw_bar(cents[number], max(cents), cost_bar, is_plain=is_plain))
        lines.append(_GAP.join(parts).rstrip())
    return lines


def _fit_bars(room: int) -> tuple[int, int]:
    """Return how wide the bars for tokens and for cost may be; 0 for one that is left out."""
    each, alone = room // 2 - len(_GAP), room - len(_GAP)
    if each >= _LEAST_BAR:
        return min(_WIDEST_BAR, each), min(_WIDEST_BAR, each)
    return (min(_WIDEST_BAR, alone), 0) if alone >= _LEAST_BAR else (0, 0)


def _render_tokens(row: MetricsRow | None) -> str:
    if row is None:
        return "0"
    return "unknown" if row.lacks_usage else render_count(row.bill.tokens)


def _render_cost(row: MetricsRow | None) -> str:
    if row is None:
        return "-"
    if row.lacks_usage:
        return "unknown"
    return render_cost(row.bill.cost, is_whole=not row.bill.unpriced and not row.untold)


def _find_cents(row: MetricsRow | None) -> int:
    """Return the cost in hundredths of a cent, as far as it is known: bars are drawn from whole numbers."""
    cost = row.bill.cost if row is not None else None
    return round(cost * 10_000) if cost is not None else 0
