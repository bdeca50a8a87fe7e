"""What sums of tokens cost."""

from decimal import Decimal

from agent_relay.transcripts.usage_records import AnswerUsage
from agent_relay.usage.table_format import draw_bar, render_cost, render_count, render_span
from agent_relay.usage.totals import Bill, Rate

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
