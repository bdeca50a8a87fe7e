"""What a model's tokens cost, and the cost of sums of them; what is not known is said to be unknown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from agent_relay.logic.transcripts.usage.marks import Used


@dataclass(frozen=True, slots=True)
class Rate:
    """US dollars for one token, in requests whose whole input is larger than `above` tokens."""

    above: int
    input: Decimal
    cached: Decimal
    cache_write: Decimal
    cache_write_long: Decimal
    output: Decimal


Rates = Callable[[str, int], Sequence[Rate]]
"""The rates of a model at a moment (epoch in ms), by rising `above`; empty where its price is not known."""


@dataclass(slots=True)
class Bill:
    """Tokens added up, and their cost.

    `unpriced` are the models without a known price, with the tokens they used; `cost` leaves those out.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    answers: int = 0
    unpriced: dict[str, int] = field(default_factory=dict)
    _sums: dict[Rate, list[int]] = field(default_factory=dict)

    def add(self, used: Used, rates: Rates) -> None:
        """Take one answer in."""
        self.add_at(used, find_rate(used, rates))

    def add_at(self, used: Used, rate: Rate | None) -> None:
        """Take one answer in at a rate that is known already; `None` where there is none."""
        self.answers += 1
        self.input += used.input
        self.cached += used.cached
        self.cache_write += used.cache_write
        self.output += used.output
        self.reasoning += used.reasoning
        if rate is None:
            name = used.model or "unknown"
            self.unpriced[name] = self.unpriced.get(name, 0) + used.tokens
            return
        sums = self._sums.get(rate)
        if sums is None:
            sums = self._sums[rate] = [0, 0, 0, 0, 0]
        sums[0] += used.input
        sums[1] += used.cached
        sums[2] += used.cache_write - used.cache_write_long
        sums[3] += used.cache_write_long
        sums[4] += used.output

    @property
    def tokens(self) -> int:
        """All tokens, each counted once: reasoning is part of the output."""
        return self.input + self.cached + self.cache_write + self.output

    @property
    def cost(self) -> Decimal | None:
        """US dollars for what has a known price; `None` where nothing has."""
        if not self._sums:
            return None if self.unpriced else Decimal(0)
        return sum((_multiply(rate, sums) for rate, sums in self._sums.items()), Decimal(0))


def find_rate(used: Used, rates: Rates) -> Rate | None:
    """What the answer's tokens cost by the size of its request; `None` where nobody knows."""
    found, size = None, used.input + used.cached + used.cache_write
    for rate in rates(used.model, used.at):
        if found is None or size > rate.above:
            found = rate
    return found


def _multiply(rate: Rate, sums: Sequence[int]) -> Decimal:
    prices = (rate.input, rate.cached, rate.cache_write, rate.cache_write_long, rate.output)
    return sum((price * count for price, count in zip(prices, sums, strict=True)), Decimal(0))
