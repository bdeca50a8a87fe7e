"""What can happen to a session with a budget."""

from dataclasses import dataclass

from agent_relay.domain.spending import Spending


@dataclass(frozen=True, slots=True)
class Counted:
    """What was used was counted while the leg lives: how the budgets that count for its agent stand."""

    leg: str
    found: tuple[Spending, ...]
