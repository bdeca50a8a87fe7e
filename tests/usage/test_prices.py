"""Prices from the library's own data, without the network."""

import socket
from datetime import date
from decimal import Decimal
from importlib.metadata import version

import pytest

from agent_relay.usage.totals import PriceList

AT = 1_795_171_000_000
MILLION = Decimal(1_000_000)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("something asked the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def test_rates_are_those_of_the_library() -> None:
    """Five, half, six and a quarter, ten and twenty-five dollars a million: the published list price."""
    (rate,) = PriceList().get_rates("claude-opus-4-8", AT)
    found = [rate.input, rate.cached, rate.cache_write, rate.cache_write_long, rate.output]
    assert [price * MILLION for price in found] == [5, Decimal("0.5"), Decimal("6.25"), 10, 25]


def test_large_requests_have_their_own_rate() -> None:
    """Above 200,000 tokens of input this model costs twice as much for all of the request."""
    small, large = PriceList().get_rates("claude-sonnet-4-5-20250929", AT)
    assert (small.above, large.above) == (0, 200_000)
    assert (small.input * MILLION, large.input * MILLION, large.output * MILLION) == (3, 6, Decimal("22.5"))


def test_a_model_nobody_lists_has_no_rate() -> None:
    """It is unknown, not free."""
    rows = ["fake-large", "", "scripted", "x" * 10_000, "<synthetic>"]
    assert [model for model in rows if PriceList().get_rates(model, AT) != ()] == []


def test_a_price_that_changed_is_that_of_its_time() -> None:
    """Last year's work was paid at last year's price."""
    prices = PriceList()
    before, after = (prices.get_rates("o3", at)[0].input * MILLION for at in (1_746_000_000_000, AT))
    assert (before, after) == (10, 2)


def test_the_data_says_how_new_it_is_at_least() -> None:
    """A price list without a date is believed for too long."""
    prices = PriceList()
    assert prices.source == f"genai-prices {version('genai-prices')}"
    newest = prices.find_newest(date(2026, 11, 20))
    assert newest is not None
    assert date(2025, 1, 1) < newest <= date(2026, 11, 20)
    assert prices.find_newest(date(1990, 1, 1)) is None
