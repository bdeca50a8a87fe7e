"""Build what timelines show of usage: by leg, and each agent's usage windows as they are now."""

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from agent_relay.domain.protocol.timeline import TimelineUsage
from agent_relay.domain.protocol.watch_output import WindowUsed
from agent_relay.store.usage_windows import read_windows
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Gathered
from agent_relay.usage.totals import MetricsRow, Rates

_MOST_WINDOWS = 4


def sum_by_leg(gathered: Gathered, rates: Rates) -> dict[str, MetricsRow]:
    """Return what each leg of relay's used, by its id."""
    rows, _ = sum_rows(gathered.works, gathered.natives, Question("leg", rates, is_ours_only=True))
    return {row.key: row for row in rows}


def build_usage(row: MetricsRow) -> TimelineUsage:
    """Build the usage of a row; a leg without a record is unknown, not zero."""
    if row.lacks_usage:
        return TimelineUsage()
    return TimelineUsage(
        tokens=row.bill.tokens,
        tokens_are_whole=not row.untold,
        cost_usd=render_decimal(row.bill.cost),
        cost_is_whole=not row.bill.unpriced and not row.untold,
    )


def render_decimal(cost: Decimal | None) -> str:
    """Return a cost as programs read it, empty if it is unknown."""
    return "" if cost is None else format(cost.normalize(), "f")


def read_windows_by_agent(path: str, now: datetime) -> Mapping[str, tuple[WindowUsed, ...]]:
    """Return the usage windows that agents last reported, by agent; what cannot be read is left out."""
    found: dict[str, tuple[WindowUsed, ...]] = {}
    for row in read_windows(path, now):
        known = found.get(str(row["agent"]), ())
        if len(known) < _MOST_WINDOWS:
            window = WindowUsed.model_validate({name: row[name] for name in WindowUsed.model_fields})
            found[str(row["agent"])] = (*known, window)
    return found
