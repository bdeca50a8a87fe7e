"""The lines of a session's journal about contexts, drafts made ahead, and the user's budgets."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class ContextNoted:
    """The leg's context passed a mark: `used` of `room` tokens (0 unknown), as its agent wrote at `read_at`.

    `level` is the new one; `read_at` is ISO 8601.
    """

    name: ClassVar[str] = "context.noted"
    leg: str
    used: int
    room: int
    level: str
    read_at: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class ContextCompacting:
    """The leg's agent is about to be told to compact its context."""

    name: ClassVar[str] = "context.compacting"
    leg: str


@dataclass(frozen=True, slots=True)
class ContextSpared:
    """The leg's agent was not told to compact after all: somebody had begun to type."""

    name: ClassVar[str] = "context.spared"
    leg: str


@dataclass(frozen=True, slots=True)
class DraftBegun:
    """The leg's agent is about to be asked for a handoff document ahead of time; `cause` says why."""

    name: ClassVar[str] = "draft.begun"
    leg: str
    cause: str


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
    """The action the user set for a used-up budget is about to be taken on the leg."""

    name: ClassVar[str] = "budget.applied"
    leg: str
    budget: str
    period: str = ""
