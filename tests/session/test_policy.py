"""Who takes over, and why everybody before them did not."""

from datetime import UTC, datetime, timedelta, timezone

from agent_relay.domain.limits import FullWindow
from agent_relay.session.decision import Availability, choose_successor

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
HERE = Availability(installed=True)
FULL = Availability(installed=True, full=FullWindow("5-hour window", NOW + timedelta(hours=2)))
RESTS = Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=1))


def test_a_spent_budget_is_the_reason_that_is_told() -> None:
    """An agent that only rests for the user's own budget has no limit that anybody could look for."""
    until = NOW + timedelta(hours=2)
    ann = Availability(installed=True, resting=True, rests_until=until, scope="budget")
    choice = choose_successor(("ann", "bob"), {"ann": ann, "bob": HERE}, current="", now=NOW)
    assert (choice.successor, choice.skipped) == ("bob", ("ann: its budget is used up until 20:20",))


def test_everyone_skipped_has_a_reason() -> None:
    """A user who wonders why the third agent came reads it."""
    known = {
        "bob": Availability(installed=False),
        "cas": Availability(installed=True, signed_in=False),
        "dan": RESTS,
        "eve": Availability(installed=True, resting=True, scope="billing"),
        "fay": HERE,
        "gil": HERE,
    }
    choice = choose_successor(("ann", *known, "hal"), known, current="ann", tried=("fay", "fay"), now=NOW)
    assert choice.successor == "gil"
    assert choice.skipped == (
        "bob: not installed",
        "cas: not signed in",
        "dan: rests until 19:20",
        "eve: rests until you say otherwise (credit limit)",
        "fay: could not take over just now",
    )
    assert choice.earliest == NOW + timedelta(hours=1)


def test_a_reset_is_told_as_the_user_reads_clocks() -> None:
    """Their zone, and the day only where it is another one: as every other line has it."""
    known = {
        "bob": Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=3)),
        "cas": Availability(installed=True, resting=True, rests_until=NOW + timedelta(days=2)),
    }
    choice = choose_successor(
        ("bob", "cas"), known, current="ann", now=NOW, zone=timezone(timedelta(hours=2))
    )
    assert choice.skipped == ("bob: rests until 23:20", "cas: rests until Nov 23, 20:20")


def test_a_reset_that_nobody_named_is_not_told_as_a_fact() -> None:
    """An hour that relay assumed looks like the agent's own word else; the first reset carries it along."""
    soon, later = NOW + timedelta(minutes=5), NOW + timedelta(hours=1)
    known = {
        "bob": Availability(installed=True, resting=True, rests_until=soon, assumed=True),
        "cas": Availability(installed=True, resting=True, rests_until=later),
    }
    choice = choose_successor(("bob", "cas"), known, current="ann", now=NOW)
    assert choice.skipped == ("bob: rests until about 18:25 (assumed)", "cas: rests until 19:20")
    assert (choice.earliest, choice.assumed) == (soon, True)
    assert not choose_successor(("cas",), known, current="ann", now=NOW).assumed


def test_nobody_is_an_answer_with_the_first_reset_of_all() -> None:
    """The one giving way counts, too: it may be back before the others."""
    known = {
        "ann": Availability(installed=True, resting=True, rests_until=NOW + timedelta(minutes=5)),
        "bob": RESTS,
    }
    choice = choose_successor(("ann", "bob", "cas"), known, current="ann", now=NOW)
    assert (choice.successor, choice.earliest) == ("", NOW + timedelta(minutes=5))
    assert choice.skipped[-1] == "cas: not installed"


def test_a_rest_that_is_over_does_not_count() -> None:
    """The ledger is read now, the reset was a moment ago."""
    known = {"bob": Availability(installed=True, resting=True, rests_until=NOW)}
    assert choose_successor(("ann", "bob"), known, current="ann", now=NOW).successor == "bob"


def test_an_agent_whose_window_is_used_up_is_passed_over_and_the_reason_recorded() -> None:
    """It would take over to say that it met its limit."""
    choice = choose_successor(["ada", "bob", "cem"], {"bob": FULL, "cem": HERE}, current="ada", now=NOW)
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
        choose_successor(["bob", "cem"], {"bob": past, "cem": HERE}, current="", now=NOW).successor == "bob"
    )
