"""A half typed line on its way to another agent: whose it is, and how it is typed there."""

import contextlib

import pytest

from tests.support.bar_seat import BarSeat
from tests.support.below_bar import ECHO, MARKED, seated, type_at, wait_to_hear
from tests.support.legs import Wire, hold, raw_python, wait_until

pytestmark = pytest.mark.size("every")


@pytest.mark.parametrize(("shown", "line"), [("typed", "x"), ("empty", ""), ("hidden", "")])
def test_only_what_an_input_line_shows_is_told_as_half_typed(tmp_path: object, shown: str, line: str) -> None:
    """Where none was ever shown, it is a sign-in that was typed to, and a code that is for nobody else."""
    with seated(str(tmp_path), MARKED) as (seat, wire):
        type_at(seat, wire, b"x")
        wait_until(lambda: float(str(wire.ask("status")["key_age_s"])) > 2.1, "the screen to be newer")
        wire.ask("say", text="soon", line=shown)
        assert seat.wire.ask("detach")["detached"] == 1
        assert seat.wire.event("detached")["line"] == line


@pytest.mark.parametrize("op", ["say", "bar"])
def test_a_code_that_was_just_typed_where_no_input_line_is_shown_is_for_nobody_else(
    tmp_path: object, op: str
) -> None:
    """The screen is not known to be newer than its last key, and its rest is still being typed."""
    with seated(str(tmp_path), MARKED) as (seat, wire):
        type_at(seat, wire, b"co")
        more = {"text": "soon"} if op == "say" else {"texts": [], "holds_keys": False}
        assert wire.ask(op, line="hidden", **more)["ok"]
        type_at(seat, wire, b"de")
        assert wire.ask("status")["typed"] == 4, "nothing is typed into the middle of it"
        assert seat.wire.ask("detach")["detached"] == 1
        assert seat.wire.event("detached")["line"] == ""


@pytest.mark.size("test")
def test_a_line_that_is_carried_to_an_agent_without_pastes_submits_nothing(tmp_path: object) -> None:
    """A bare line end is the Enter key to it: the words come in one line."""
    with hold(str(tmp_path), raw_python(ECHO)) as held, Wire(held.folder) as wire:
        wire.wait_for_text("ready")
        carried = "one\x1b[200~\n\x1b[201~two \x1b[200~three\nfour\x1b[201~"
        seat = BarSeat(held.folder, held=carried)
        with contextlib.closing(seat):
            wait_to_hear(wire, b"one two three four")
