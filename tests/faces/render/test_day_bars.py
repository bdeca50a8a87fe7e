"""Days in a row, with those on which nothing was used, and their bars on terminals of any width."""

from decimal import Decimal

import pytest

from agent_relay.faces.render.day_bars import draw_days, list_days
from agent_relay.usage.totals import UNNAMED, Bill, MetricsRow, Rate

ONE = Decimal(1)
RATE = Rate(0, ONE, ONE, ONE, ONE, ONE)


def _row(day: str, tokens: int, *, priced: int | None = None, untold: int = 0) -> MetricsRow:
    """A row whose first `priced` tokens cost a dollar each; the others have no known price."""
    paid = tokens if priced is None else priced
    bill = Bill(input=tokens, answers=1 if tokens else 0)
    if paid:
        bill.paid[RATE] = [paid, 0, 0, 0, 0]
    if tokens > paid:
        bill.unpriced["nobody"] = tokens - paid
    return MetricsRow(day, bill, untold=untold)


def test_days_without_usage_have_empty_lines_and_long_stretches_one_for_all() -> None:
    """A week of holidays would otherwise look as if Monday followed Friday; ten years are not 3,650 lines."""
    rows = [_row("2016-02-28", 1), _row("2016-03-02", 1), _row("2026-11-20", 1), _row(UNNAMED, 5)]
    assert [(line.day, line.empty) for line in list_days(rows[::-1])] == [
        ("2016-02-28", 0),
        ("2016-02-29", 1),
        ("2016-03-01", 1),
        ("2016-03-02", 0),
        ("", 3914),
        ("2026-11-20", 0),
        (UNNAMED, 0),
    ]


def test_bars_show_tokens_and_cost_and_say_what_is_unknown() -> None:
    """A price that nobody knows is no zero, and neither is a record that is gone."""
    rows = [
        _row("2026-11-20", 1000),
        _row("2026-11-22", 500, priced=250),
        _row("2026-11-23", 250, priced=0),
        _row("2026-11-24", 0, untold=1),
    ]
    assert draw_days(rows, width=60, is_plain=False) == [
        "             tokens                      cost",
        "2026-11-20    1,000  █████████████  $1,000.00  █████████████",
        "2026-11-21        0                         -",
        "2026-11-22      500  ██████▌         >$250.00  ███▎",
        "2026-11-23      250  ███▎             unknown",
        "2026-11-24  unknown                   unknown",
    ]


@pytest.mark.parametrize("width", [1, 20, 35, 41, 45, 80, 500])
def test_bars_give_way_to_figures_where_there_is_no_room(width: int) -> None:
    """Half a number is a wrong number; no line is wider than the terminal if that can be helped."""
    rows = [_row("2026-11-20", 1_234_567), _row("2026-11-23", 1), _row("2027-11-23", 1)]
    lines = draw_days(rows, width=width, is_plain=True)
    assert all("1,234,567" in line and "$1,234,567.00" in line for line in lines if "2026-11-20" in line)
    assert max(map(len, lines)) <= max(width, len("2026-11-20  1,234,567  $1,234,567.00"))
    assert "364 days without usage" in lines[-2]
    assert all(line.isascii() and line == line.rstrip() for line in lines)


def test_a_single_day_has_no_bar() -> None:
    """It compares with nothing."""
    assert draw_days([_row("2026-11-20", 1)], width=80, is_plain=False) == []
    assert draw_days([], width=80, is_plain=False) == []
