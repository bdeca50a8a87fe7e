"""Effects and inputs of the state machine about the context and the budgets of an agent at work."""

from dataclasses import dataclass
from datetime import datetime

from agent_relay.domain.budgets import Spending


@dataclass(frozen=True, slots=True)
class Draft:
    """Have the leg's agent write a handoff document in a fork of its session. Nothing answers."""

    leg: str


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Come back with Quiet once the leg waits for a prompt, nobody types one, and no draft is being written.

    Nothing answers where that does not come to pass.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Type the agent's own command that makes its conversation shorter.

    Comes back with Spared where somebody had begun to type; else nothing answers.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class ContextFilled:
    """The leg's context stands between other marks than before: `used` of `room` tokens (0 unknown).

    `at` is when its agent said so (aware).
    """

    leg: str
    used: int
    room: int
    at: datetime
    model: str = ""


@dataclass(frozen=True, slots=True)
class CompactSkipped:
    """The leg's agent was not told to compact after all: somebody had begun to type."""

    leg: str


@dataclass(frozen=True, slots=True)
class LegQuiet:
    """The leg waits for a prompt, and nobody is typing one."""

    leg: str


@dataclass(frozen=True, slots=True)
class BudgetsCounted:
    """What was used was counted while the leg lives: how the budgets that count for its agent stand."""

    leg: str
    found: tuple[Spending, ...]
