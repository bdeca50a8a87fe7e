"""What sums of tokens cost, by prices from the library's own data, without the network."""

import socket
from datetime import date
from decimal import Decimal
from importlib.metadata import version

import pytest

from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage.table_format import draw_bar, render_cost, render_count, render_span
from agent_relay.usage.totals import Bill, PriceList, Rate

SMALL = Rate(0, Decimal(3), Decimal("0.3"), Decimal("3.75"), Decimal(6), Decimal(15))
LARGE = Rate(1000, Decimal(6), Decimal("0.6"), Decimal("7.5"), Decimal(12), Decimal("22.5"))


def _rates(model: str, _at: int) -> tuple[Rate, ...]:
    return (SMALL, LARGE) if model == "known" else ()


def _used(model: str = "known", size: int = 100) -> AnswerUsage:
    return AnswerUsage(
        "k", 1, "s", model, input=size, cached=10, cache_write=8, output=4, reasoning=3, cache_write_long=2
    )


def test_each_kind_of_token_has_its_own_price() -> None:
    """100 * 3 + 10 * 0.3 + 6 * 3.75 + 2 * 6 + 4 * 15 = 300 + 3 + 22.5 + 12 + 60; reasoning is output."""
    bill = Bill()
    bill.add(_used(), _rates)
    assert bill.cost == Decimal("397.5")
    assert (bill.tokens, bill.reasoning, bill.answers) == (122, 3, 1)


def test_the_size_of_each_request_chooses_its_price() -> None:
    """A sum of small requests is no large one: two of 600 pay 2 * 600 * 3, one of 1,200 pays 1,200 * 6."""
    small, large = Bill(), Bill()
    for bill, sizes in ((small, (600, 600)), (large, (1200,))):
        for size in sizes:
            bill.add(AnswerUsage("k", 1, "s", "known", input=size), _rates)
    assert (small.cost, large.cost) == (Decimal(3600), Decimal(7200))


def test_an_unknown_price_is_unknown_and_never_nothing() -> None:
    """A model nobody lists is not free; what is known beside it still counts."""
    bill = Bill()
    assert bill.cost == Decimal(0)
    bill.add(_used("other"), _rates)
    bill.add(_used(""), _rates)
    assert bill.cost is None
    assert bill.unpriced == {"other": 122, "unknown": 122}
    bill.add(_used("other"), _rates)
    bill.add(_used(), _rates)
    bill.add(_used(), _rates)
    assert (bill.cost, bill.unpriced["other"]) == (Decimal(795), 244)


def test_figures_say_what_they_leave_out() -> None:
    """A number that was cut, rounded to nothing or guessed is worse than none."""
    assert render_count(1_234_567_890_123) == "1,234,567,890,123"
    assert render_cost(Decimal("1234.567"), is_whole=True) == "$1,234.57"
    assert render_cost(Decimal("0.01234"), is_whole=False) == ">$0.0123"
    assert render_cost(Decimal(0), is_whole=True) == "$0.00"
    assert render_cost(None, is_whole=False) == "unknown"


def test_times_are_read_at_a_glance() -> None:
    """From tenths of a second to days, with what nobody knows as a dash."""
    lengths = (None, 0, 4_200, 59_999, 61_000, 3_600_000, 11_100_000, 86_400_000, 187_200_000)
    assert [render_span(length) for length in lengths] == [
        "-", "0.0 s", "4.2 s", "60.0 s", "1 min", "1 h 00", "3 h 05", "1 d 00 h", "2 d 04 h",
    ]  # fmt: skip


def test_small_pictures_never_hide_something_and_never_show_nothing() -> None:
    """A bar for one token of a million is still a bar."""
    assert (draw_bar(10, 10, 4), draw_bar(5, 10, 4), draw_bar(1, 1_000_000, 4)) == ("████", "██", "▏")
    assert (draw_bar(0, 10, 4), draw_bar(0, 0, 4)) == ("", "")
    assert (draw_bar(10, 10, 4, is_plain=True), draw_bar(1, 1000, 4, is_plain=True)) == ("####", "#")


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
