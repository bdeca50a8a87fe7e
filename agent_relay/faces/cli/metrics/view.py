"""One view of metrics for tables, JSON and CSV."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from agent_relay.faces.cli.metrics.table import NOTHING
from agent_relay.logic.metrics.by import By
from agent_relay.logic.metrics.figures import render_cost, render_count, render_span
from agent_relay.logic.metrics.legs import SessionWork
from agent_relay.logic.metrics.row import Row

COLUMNS = (
    "key", "label", "agents", "input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens",
    "reasoning_tokens", "total_tokens", "answers", "cost_usd", "cost_is_whole", "unpriced_tokens", "turns",
    "failed_turns", "wall_s", "active_s", "waiting_s", "handoffs", "limits", "failovers", "failover_mean_s",
    "failover_max_s", "lines_added", "lines_removed", "legs_without_transcript", "first_at", "last_at",
)  # fmt: skip
"""What a row says, in JSON and CSV; absent figures are null and empty."""


def build_row(row: Row, label: str) -> dict[str, object]:
    """One row under `COLUMNS`. `cost_usd` is a decimal as text, null where no price of it is known.

    Where no leg of the row left a transcript, what it used is null: it is not known.
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
        **(dict.fromkeys(used) if _is_untold(row) else used),
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
    }


HEADERS = (
    "input", "cached", "written", "output", "reasoning", "cost", "turns", "failed", "wall", "active",
    "waiting", "handoffs", "limits", "failover", "lines",
)  # fmt: skip


def list_cells(row: Row) -> list[str]:
    """The cells of a row under `HEADERS`; `-` where nothing is told, or there is nothing."""
    bill = row.bill
    counts = (bill.input, bill.cached, bill.cache_write, bill.output, bill.reasoning)
    used = [
        *(render_count(count) for count in counts),
        render_cost(bill.cost, is_whole=not bill.unpriced and not row.untold),
    ]
    return [
        *([NOTHING] * len(used) if _is_untold(row) else used),
        *(render_count(count) if row.turns else NOTHING for count in (row.turns, row.failed)),
        *(render_span(length) for length in (row.wall_ms, row.active_ms, row.waiting_ms)),
        *(render_count(count) if count else NOTHING for count in (row.handoffs, row.limits)),
        render_span(_mean(row.failovers_ms)),
        f"+{render_count(row.added)} -{render_count(row.removed)}" if row.added or row.removed else NOTHING,
    ]


def _is_untold(row: Row) -> bool:
    return bool(row.untold) and not row.bill.answers


def name_row(row: Row, by: By, works: Mapping[str, SessionWork]) -> str:
    """What people call the row: a session by its id's end and its agents, all others by their key."""
    work = works.get(row.key)
    if by == "session" and work is not None:
        return f"{row.key[-8:]} {'>'.join(row.agents)}"
    if by == "leg" and ":" not in row.key:
        return f"{row.key[-8:]} {'>'.join(row.agents)}"
    agent, colon, native = row.key.partition(":")
    return f"{native[:13]} {agent}" if colon and by in ("session", "leg") else row.key


def _mean(lengths: Sequence[int]) -> int | None:
    return sum(lengths) // len(lengths) if lengths else None


def _seconds(length_ms: int | None) -> float | None:
    return None if length_ms is None else length_ms / 1000


def _moment(at: int) -> str | None:
    return datetime.fromtimestamp(at / 1000, UTC).isoformat() if at else None
