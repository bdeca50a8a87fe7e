"""The lines of a session's journal that tell of the user's budgets."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class BudgetNoted:
    """A budget passed a mark, or was found beyond it; the fields are as `Spending` has them."""

    name: ClassVar[str] = "budget.noted"
    leg: str
    budget: str
    mark: str
    text: str
    agent: str = ""
    then: str = "warn"
    period: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class BudgetApplied:
    """What the user wants done when the budget is used up is about to be done, to the leg."""

    name: ClassVar[str] = "budget.applied"
    leg: str
    budget: str
    period: str = ""
