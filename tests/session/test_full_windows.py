"""A successor whose window is used up: others come first, and it is asked if nobody else can take over."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.limits import FullWindow
from agent_relay.session.decision import Availability, choose_successor

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
FREE = Availability(installed=True)
FULL = Availability(installed=True, full=FullWindow("5-hour window", NOW + timedelta(hours=2)))
RESTS = Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=1))


def test_an_agent_whose_window_is_used_up_is_passed_over_and_the_reason_recorded() -> None:
    """It would take over to say that it met its limit."""
    choice = choose_successor(["ada", "bob", "cem"], {"bob": FULL, "cem": FREE}, current="ada", now=NOW)
    assert (choice.successor, choice.skipped) == (
        "cem",
        ("bob: its 5-hour window is used up until 20:20",),
    )


def test_it_is_asked_if_nobody_else_can_take_over() -> None:
    """It may work with credits, or the count may lie; only its own limit makes it rest."""
    choice = choose_successor(["ada", "bob", "cem"], {"bob": FULL, "cem": RESTS}, current="ada", now=NOW)
    assert (choice.successor, choice.skipped) == ("bob", ("cem: rests until 19:20",))
    assert choose_successor(["bob"], {"bob": FULL}, current="", now=NOW).successor == "bob"


def test_a_window_that_has_begun_anew_is_not_used_up() -> None:
    """The reading is of the window before."""
    past = Availability(installed=True, full=FullWindow("5-hour window", NOW))
    assert (
        choose_successor(["bob", "cem"], {"bob": past, "cem": FREE}, current="", now=NOW).successor == "bob"
    )
