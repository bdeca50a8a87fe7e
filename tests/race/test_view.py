"""One view for every face, as its published schema says, and the verdict in it with its reasons."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from agent_relay.race._events import OverlapSeen, RaceApplied, RaceApplying, RaceBody, RaceScored
from agent_relay.race.model import Race, build_race_view, build_verdict
from agent_relay.race.schema import RaceView, RunnerView, build_race_schema
from tests.support.races import BEGAN, begin, settle, start, tell


def look(race: Race, now: datetime = BEGAN) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The view of a race, and of its runners."""
    view = build_race_view(race, now)
    return view, view["runners"]  # type: ignore[return-value]  # a list of objects


def test_a_race_under_way_says_how_long_and_what_is_not_known() -> None:
    """Zero files would say that nothing was done."""
    race = tell(
        *begin("ann", "bob", "eve"), *start(1), *settle(2)[:-1], OverlapSeen(1, 2, "a.py", "both add it")
    )
    view, runners = look(race, BEGAN + timedelta(seconds=64))
    one, two, three = runners
    assert (one["runner"], one["state"], one["spent_s"], one["files"]) == ("1-ann", "running", 60.0, None)
    assert (two["state"], two["test"], two["files"], two["test_s"]) == ("testing", "running", 1, None)
    assert [three[name] for name in ("state", "test", "place", "spent_s")] == ["waiting", "waiting", None, 0]
    assert view["overlaps"] == [{"first": "1-ann", "second": "2-bob", "path": "a.py", "what": "both add it"}]
    assert (view["winner"], view["resumable"], view["applied"]) == ("", True, "")


def test_a_decided_race_names_its_winner_and_the_reasons() -> None:
    """The reasons stand beside the runner they are about."""
    scored = RaceScored(2, ("2", "1"), ("because", "why not"))
    race = tell(
        *begin("ann", "bob"), *settle(1, test=1), *settle(2), scored, RaceApplying(2), RaceApplied(2, 3)
    )
    view, runners = look(race)
    assert [(one["place"], one["reason"], one["test"]) for one in runners] == [
        (2, "why not", "failed"),
        (1, "because", "passed"),
    ]
    assert (view["winner"], view["ranking"], view["applied"]) == ("2-bob", ["2-bob", "1-ann"], "2-bob")
    assert (view["applied_files"], view["resumable"]) == (3, False)


def test_a_race_without_a_test_and_without_a_winner_says_so() -> None:
    """Nobody is named where nobody won."""
    told = [*settle(1, test=None, how="failed"), *settle(2, test=None, how="failed")]
    race = tell(*begin("ann", "bob", test=""), *told, RaceScored(0, ("1", "2"), ("", "")))
    view, runners = look(race)
    assert (view["winner"], runners[0]["test"]) == ("", "none")


def test_the_schema_allows_a_race_at_any_time_and_names_every_field_of_it() -> None:
    """A field that is not in the schema is one no script may rely on."""
    allowed = Draft202012Validator(build_race_schema())
    decided = RaceScored(1, ("1", "2"), ("test passed", "failed the test"))
    for race in (
        tell(*begin("ann", "bob")),
        tell(*begin("ann", "bob"), *start(1)),
        tell(*begin("ann", "bob"), *settle(1), *settle(2, test=1), decided),
    ):
        view, runners = look(race, BEGAN + timedelta(minutes=1))
        view |= {"active": True, "trouble": ""}
        allowed.validate(view)
        assert set(view) == set(RaceView.model_fields)
        assert set(runners[0]) | {"at_work", "doing"} == set(RunnerView.model_fields)
    with pytest.raises(ValidationError):
        allowed.validate(view | {"winner": 1})


def score(*bodies: RaceBody, test: str = "make test") -> tuple[int, tuple[int, ...], tuple[str, ...]]:
    verdict = build_verdict(tell(*begin("ann", "bob", "eve", test=test), *bodies))
    return verdict.winner, verdict.order, verdict.reasons


def test_the_test_decides_before_size_and_time() -> None:
    """A small quick change that breaks the test is worth nothing."""
    assert score(*settle(1, test=1, lines=1, spent_ms=1000), *settle(2), *settle(3, lines=11)) == (
        2,
        (2, 3, 1),
        (
            "test passed, 10 lines in 1 file, 40.0 s; 1 line less than 3-eve",
            "test passed, 11 lines in 1 file, 40.0 s; 1-ann failed the test",
            "test failed (exit 1), 1 line in 1 file, 1.0 s",
        ),
    )


def test_equal_sizes_are_decided_by_time_and_equal_times_by_the_order_given() -> None:
    """A tie is said, not hidden behind an order that looks like a judgement."""
    assert score(*settle(1, files=2), *settle(2, files=2), *settle(3, spent_ms=39_500)) == (
        3,
        (3, 1, 2),
        (
            "test passed, 10 lines in 1 file, 39.5 s; as many lines as 1-ann, 0.5 s faster",
            "test passed, 10 lines in 2 files, 40.0 s; a tie with 2-bob, broken by the order given",
            "test passed, 10 lines in 2 files, 40.0 s",
        ),
    )


def test_whoever_changed_nothing_is_last_and_never_wins() -> None:
    """Where the test passed before, the smallest diff is the empty one."""
    winner, order, reasons = score(
        *settle(1, files=0, lines=0), *settle(2, test=1), *settle(3, test=1, how="limited", why="all rest")
    )
    assert score(*settle(1, files=0), *settle(2, files=0), *settle(3, files=0))[2] == (
        "changed nothing (finished)",
        "changed nothing (finished)",
        "changed nothing (finished)",
    )
    assert (winner, order) == (0, (2, 3, 1))
    assert reasons[1] == (
        "test failed (exit 1), limited: all rest, 10 lines in 1 file, 40.0 s; 1-ann changed nothing"
    )
    assert reasons[2] == "changed nothing (finished)"


def test_a_test_that_did_not_end_by_itself_says_why() -> None:
    """An exit code of a test that was ended says nothing."""
    _, _, reasons = score(*settle(1), *settle(2), *settle(3, test=143, test_why="not done within 600 s"))
    assert reasons[2] == "test not done within 600 s, 10 lines in 1 file, 40.0 s"


def test_without_a_test_whoever_finished_goes_first() -> None:
    """There is nothing else to judge by."""
    told = [*settle(1, how="timed-out", test=None), *settle(2, test=None), *settle(3, lines=12, test=None)]
    assert score(*told, test="") == (
        2,
        (2, 3, 1),
        (
            "finished, 10 lines in 1 file, 40.0 s; 2 lines less than 3-eve",
            "finished, 12 lines in 1 file, 40.0 s; 1-ann did not finish",
            "timed out, 10 lines in 1 file, 40.0 s",
        ),
    )
