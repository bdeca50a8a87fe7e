"""What a runner's agents used, by their own records: turns, tokens, money."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agent_relay.logic.metrics.figures import render_cost
from agent_relay.logic.metrics.rows import Question, sum_rows
from agent_relay.system.folders import Folders
from agent_relay.system.metrics import Wanted, gather_metrics
from agent_relay.system.prices import PriceList


@dataclass(frozen=True, slots=True)
class Used:
    """Turns taken, tokens and money; `None` where nothing tells."""

    turns: int
    tokens: int | None
    cost: str | None


def read_used(folders: Folders, tree: str, environ: Mapping[str, str], now: datetime) -> Used:
    """What was used in the worktree `tree` so far. Reads disk. Raises RelayError."""
    gathered = gather_metrics(folders, Wanted(), cwd=tree, environ=environ, now=now)
    question = Question("agent", PriceList().get_rates, _name_day)
    _, total = sum_rows(gathered.works, gathered.natives, question)
    bill = total.bill
    if not bill.answers:
        return Used(total.turns, None, None)
    cost = render_cost(bill.cost, is_whole=not bill.unpriced and not total.untold)
    return Used(total.turns, bill.tokens, cost if bill.cost is not None else None)


def _name_day(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).date().isoformat()
