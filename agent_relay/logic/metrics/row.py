"""One row of the table of metrics: what something has come to."""

import msgspec

from agent_relay.logic.metrics.rates import Bill


class Row(msgspec.Struct):
    """What one key of the table has come to; times in ms, `None` where nothing tells them.

    `untold` counts legs that left no transcript we can read: what they used is not known.
    """

    key: str
    bill: Bill = msgspec.field(default_factory=Bill)
    agents: list[str] = msgspec.field(default_factory=list)
    first: int = 0
    last: int = 0
    turns: int = 0
    failed: int = 0
    wall_ms: int | None = None
    active_ms: int | None = None
    waiting_ms: int | None = None
    handoffs: int = 0
    limits: int = 0
    failovers_ms: list[int] = msgspec.field(default_factory=list)
    added: int = 0
    removed: int = 0
    untold: int = 0

    def merge(self, row: "Row") -> None:
        """Take all of another row in, but for its key and its agents."""
        self.bill.merge(row.bill)
        if row.first and (not self.first or row.first < self.first):
            self.first = row.first
        self.last = max(self.last, row.last)
        self.turns += row.turns
        self.failed += row.failed
        self.wall_ms = _add(self.wall_ms, row.wall_ms)
        self.active_ms = _add(self.active_ms, row.active_ms)
        self.waiting_ms = _add(self.waiting_ms, row.waiting_ms)
        self.handoffs += row.handoffs
        self.limits += row.limits
        self.failovers_ms += row.failovers_ms
        self.added += row.added
        self.removed += row.removed
        self.untold += row.untold


def _add(time: int | None, more: int | None) -> int | None:
    return time if more is None else (time or 0) + more
