"""What a user allows agents to use, and how much of that a session knows to be used."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum


class Mark(StrEnum):
    """How much of a budget is used.

    `uncounted` while that cannot be counted, or not all of it; `unpriced` while it is not known because some
    model has no known price.
    """

    OPEN = "open"
    UNCOUNTED = "uncounted"
    UNPRICED = "unpriced"
    WARN = "warn"
    SPENT = "spent"

    def is_above(self, other: "Mark") -> bool:
        """Return whether more of the budget is used than at `other`."""
        return _MARKS.index(self) > _MARKS.index(other)


_MARKS = tuple(Mark)


@dataclass(frozen=True, slots=True)
class Budget:
    """So many `tokens`, or so many US dollars, may be used in a session or on a day (`per`).

    For a session, what its legs used counts; for a day, all the user's usage on this machine; `agent`
    narrows it to one agent. At `warn` percent the user is warned. When it is used up, `then` says what
    happens: nothing more (warn), the agent hands over (handoff), or the session ends (stop).
    """

    per: str
    agent: str = ""
    tokens: int = 0
    dollars: Decimal | None = None
    warn: float = 80
    then: str = "warn"

    @property
    def name(self) -> str:
        """The budget in words: `your budget of $5.00 a day for claude`; no two of a user share it."""
        allowed = f"{self.tokens:,} tokens" if self.dollars is None else f"${self.dollars:,.2f}"
        return f"your budget of {allowed} a {self.per}{f' for {self.agent}' if self.agent else ''}"


@dataclass(frozen=True, slots=True)
class Spending:
    """How much of a budget is used: `text` says it in words, `mark` in one.

    `period` is the day it is about (ISO 8601), until the moment `until`; both empty for a session's. `agent`
    and `then` are the budget's. `is_done` once the session did what `then` says; `at` is when it was noted.
    """

    budget: str
    mark: Mark
    text: str
    agent: str = ""
    then: str = "warn"
    period: str = ""
    until: str = ""
    at: datetime | None = None
    is_done: bool = False
