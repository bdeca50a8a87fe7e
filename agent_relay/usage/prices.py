"""Look up what models cost in the data that comes with the price library: nothing is fetched."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal

from agent_relay.usage.totals import Rate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot

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
        """Where the prices come from: the library and its version."""
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
