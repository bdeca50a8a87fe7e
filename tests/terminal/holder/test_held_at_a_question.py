"""Keys that are held, or on their way to the agent, when it asks something: they are not its answer."""

import contextlib

import pytest

from tests.support.bar_seat import BarSeat
from tests.support.below_bar import (
    MARKED,
    heard,
    hold_keys,
    let_go,
    seat_below_bar,
    wait_to_hear,
)
from tests.support.legs import Wire, hold, raw_python

pytestmark = pytest.mark.size("every")


def ask(wire: Wire, *texts: str) -> None:
    """The agent asks something."""
    assert wire.ask("asking", texts=list(texts))["ok"]


@pytest.mark.size("test")
def test_typing_stops_at_a_question_and_goes_on_behind_its_answer(tmp_path: object) -> None:
    """An Enter that was typed for something else could allow a command."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"\x03" * 5 + b"end\r")
        let_go(seat, wire)
        wait_to_hear(wire, b"\x03")
        ask(wire, "asks")
        seat.wait_for_bar("asks")
        given = heard(wire)
        rest = (b"\x03" * 5 + b"end\r")[len(given) :]
        assert wire.ask("status")["held"] == len(rest)
        assert rest.endswith(b"\x03end\r")
        seat.ours.sendall(b"1\r")
        wait_to_hear(wire, given + b"1\r")
        let_go(seat, wire)
        wait_to_hear(wire, given + b"1\r" + rest)


def test_what_is_held_stays_so_where_a_question_takes_the_place_of_the_bar(tmp_path: object) -> None:
    """The successor's first work may be to ask."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        hold_keys(seat, wire, b"task\r")
        ask(wire, "asks")
        seat.wait_for_bar("asks")
        seat.ours.sendall(b"n")
        wait_to_hear(wire, b"n")
        let_go(seat, wire)
        wait_to_hear(wire, b"ntask\r")


def test_a_question_has_no_bar_where_nothing_is_held(tmp_path: object) -> None:
    """The bar goes, and a question of everyday has the whole screen."""
    with seat_below_bar(str(tmp_path), MARKED) as (seat, wire):
        seat.bar = ""
        ask(wire, "asks")
        assert wire.ask("status")["bar"] is False
        seat.wait_until(
            lambda: "asks" not in seat.text() and "relay" not in seat.text(), "the bar to be gone"
        )
        seat.ours.sendall(b"1")
        wait_to_hear(wire, b"1")


def test_keys_that_a_terminal_brings_along_wait_for_the_answer(tmp_path: object) -> None:
    """They were typed between two agents, and reach the successor only now."""
    with hold(str(tmp_path), raw_python(MARKED)) as held, Wire(held.folder) as wire:
        wire.wait_for_text("ready")
        ask(wire, "asks")
        seat = BarSeat(held.folder, held="task\r")
        with contextlib.closing(seat):
            seat.wait_for_bar("asks")
            seat.ours.sendall(b"1")
            wait_to_hear(wire, b"1")
            let_go(seat, wire)
            wait_to_hear(wire, b"1task\r")
        later = BarSeat(held.folder, held="more")
        with contextlib.closing(later):
            wait_to_hear(wire, b"1task\rmore")
