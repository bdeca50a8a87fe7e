"""Add up tokens, what they cost, and all else that one row of metrics shows.

Prices are looked up in the data that comes with the price library: nothing is fetched. What is not known,
such as the price of a model, is reported as unknown and never counted as zero.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import add

import msgspec

from agent_relay.transcripts.usage_records import AnswerUsage, list_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

UNANSWERED = "unanswered"
"""The row, by model, of turns that no model answered: without it the rows would not add up to the total."""
UNNAMED = "unknown"
"""The name for a model that no record names, and for the day of what nothing dates."""


class Rate(msgspec.Struct, frozen=True):
    """US dollars for one token, in requests whose whole input is larger than `above` tokens."""

    above: int
    input: Decimal
    cached: Decimal
    cache_write: Decimal
    cache_write_long: Decimal
    output: Decimal

    def __hash__(self) -> int:
        """Hash one price only: hashing decimals is slow, and few rates share it."""
        return hash(self.output)


Rates = Callable[[str, int], Sequence[Rate]]
"""The rates of a model at a moment (epoch in ms), by rising `above`; empty if its price is not known.

They are constant within a quarter of an hour.
"""


class Bill(msgspec.Struct):
    """Tokens added up, and their cost.

    `unpriced` are the models without a known price, with the tokens they used; `cost` leaves those out.
    `paid` are the counts of the others by what they cost, in the order of a rate's prices.
    """

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    answers: int = 0
    unpriced: dict[str, int] = msgspec.field(default_factory=dict)
    paid: dict[Rate, list[int]] = msgspec.field(default_factory=dict)

    def add(self, used: AnswerUsage, rates: Rates) -> None:
        """Add one answer."""
        self.add_all(used.model, list_columns((used,)).counts, rates(used.model, used.at))

    def add_all(self, model: str, counts: Sequence[Sequence[int]], rates: Sequence[Rate]) -> None:
        """Add answers of a model, given as the `counts` of `Columns`; `rates` must hold for all of them."""
        if not rates:
            self._add_at(None, counts)
            tokens = sum(map(sum, counts[:4]))
            self.unpriced[model or UNNAMED] = self.unpriced.get(model or UNNAMED, 0) + tokens
            return
        if len(rates) == 1:
            self._add_at(rates[0], counts)
            return
        above = [rate.above for rate in rates[1:]]
        new, cached, written, *_ = counts
        sizes = [*map(add, map(add, new, cached), written)]
        if max(sizes, default=0) <= above[0]:
            self._add_at(rates[0], counts)
            return
        tiers: list[list[int]] = [[] for _ in rates]
        for place, size in enumerate(sizes):
            tiers[bisect_left(above, size)].append(place)
        for rate, same in zip(rates, tiers, strict=True):
            if same:
                self._add_at(rate, [[column[place] for place in same] for column in counts])

    def _add_at(self, rate: Rate | None, counts: Sequence[Sequence[int]]) -> None:
        """Add answers that all pay the same rate; `None` if it is unknown."""
        new, cached, written, output, reasoning, long = map(sum, counts)
        self.answers += len(counts[0])
        self.input += new
        self.cached += cached
        self.cache_write += written
        self.output += output
        self.reasoning += reasoning
        if rate is not None:
            self._pay(rate, [new, cached, written - long, long, output])

    def _pay(self, rate: Rate, counts: Sequence[int]) -> None:
        known = self.paid.setdefault(rate, [0] * len(counts))
        known[:] = map(add, known, counts)

    def merge(self, bill: "Bill") -> None:
        """Add all of another bill."""
        self.answers += bill.answers
        self.input += bill.input
        self.cached += bill.cached
        self.cache_write += bill.cache_write
        self.output += bill.output
        self.reasoning += bill.reasoning
        for rate, counts in bill.paid.items():
            self._pay(rate, counts)
        for name, tokens in bill.unpriced.items():
            self.unpriced[name] = self.unpriced.get(name, 0) + tokens

    @property
    def tokens(self) -> int:
        """All tokens, each counted once: reasoning is part of the output."""
        return self.input + self.cached + self.cache_write + self.output

    @property
    def cost(self) -> Decimal | None:
        """US dollars for what has a known price; `None` if nothing has."""
        if not self.paid:
            return None if self.unpriced else Decimal(0)
        return sum((_multiply(rate, sums) for rate, sums in self.paid.items()), Decimal(0))


def _multiply(rate: Rate, sums: Sequence[int]) -> Decimal:
    prices = (rate.input, rate.cached, rate.cache_write, rate.cache_write_long, rate.output)
    return sum((price * count for price, count in zip(prices, sums, strict=True)), Decimal(0))


class MetricsRow(msgspec.Struct):
    """One row of the table; times in ms, `None` where unknown.

    `untold` counts legs that left no transcript we can read: what they used is not known. `relay_tokens` are
    the part of the tokens that relay's own requests used.
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
    relay_tokens: int = 0

    @property
    def lacks_usage(self) -> bool:
        """True if what was used is unknown: no leg of the row left a transcript."""
        return bool(self.untold) and not self.bill.answers

    def merge(self, row: "MetricsRow") -> None:
        """Add all of another row except its key and its agents."""
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
        self.relay_tokens += row.relay_tokens


def _add(time: int | None, more: int | None) -> int | None:
    return time if more is None else (time or 0) + more


_HOUR_MS = 3_600_000
# One token more than a threshold is the first that pays its price.
_ABOVE = 1


def load_prices() -> None:
    """Import the price library; slow, and only what shows money needs it."""
    import genai_prices.data_snapshot  # noqa: F401


class PriceList:
    """The rates of models; the library is asked once for each model, hourly where its price changes."""

    def __init__(self) -> None:
        load_prices()
        from genai_prices import data_snapshot

        self._snapshot = data_snapshot.get_snapshot()
        self._known: dict[tuple[str, int], Sequence[Rate]] = {}
        self._changing: dict[str, bool] = {}

    def get_rates(self, model: str, at_ms: int) -> Sequence[Rate]:
        """Return the rates of `model` at a moment, by rising size of the request; empty if none is known."""
        is_changing = self._changing.get(model)
        if is_changing is None:
            is_changing = self._changing[model] = self._is_changing(model)
        key = model, at_ms // _HOUR_MS if is_changing else -1
        rates = self._known.get(key)
        if rates is None:
            rates = self._known[key] = _ask(self._snapshot, model, datetime.fromtimestamp(at_ms / 1000, UTC))
        return rates

    @property
    def source(self) -> str:
        """Source of the prices: the library and its version."""
        from genai_prices import __version__

        return f"genai-prices {__version__}"

    def find_newest(self, today: date) -> date | None:
        """Return the date of the newest price change up to today: the data is at least as new."""
        from genai_prices.types import StartDateConstraint

        dates = [
            one.constraint.start_date
            for provider in self._snapshot.providers
            for model in provider.models
            if isinstance(model.prices, list)
            for one in model.prices
            if isinstance(one.constraint, StartDateConstraint)
        ]
        return max((found for found in dates if found <= today), default=None)

    def _is_changing(self, model: str) -> bool:
        """Tell whether the model's price depends on the moment."""
        try:
            _, found = self._snapshot.find_provider_model(model, None, None, None)
        except LookupError:
            return False
        return isinstance(found.prices, list)


def _ask(snapshot: "DataSnapshot", model: str, at: datetime) -> Sequence[Rate]:
    """Ask the library for the model's rates at a moment, by rising size of the request."""
    from genai_prices.types import TieredPrices

    try:
        provider, found = snapshot.find_provider_model(model, None, None, None)
        prices = found.get_prices(at)
    except LookupError:
        return ()
    starts = {
        tier.start
        for price in vars(prices).values()
        if isinstance(price, TieredPrices)
        for tier in price.tiers
    }

    def cost(size: int, **more: int) -> Decimal:
        from genai_prices import Usage

        usage = Usage(**{"input_tokens": size, "output_tokens": 0} | more)
        return found.calc_price(usage, provider, genai_request_timestamp=at).total_price

    def rate(above: int) -> Rate:
        size = above + _ABOVE if above else 0
        base = cost(size)
        return Rate(
            above=above,
            input=cost(size + 1) - base,
            cached=cost(size + 1, cache_read_tokens=1) - base,
            cache_write=cost(size + 1, cache_write_tokens=1) - base,
            cache_write_long=cost(size + 1, cache_write_tokens=1, cache_write_1h_tokens=1) - base,
            output=cost(size, output_tokens=1) - base,
        )

    if not any(isinstance(price, Decimal | TieredPrices) for price in vars(prices).values()):
        return ()
    return tuple(rate(above) for above in sorted({0, *starts}))
