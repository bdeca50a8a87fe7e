"""One view for every face, as its published schema says: what is not known is not there, rather than zero."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from agent_relay.race._events import OverlapSeen, RaceApplied, RaceApplying, RaceScored
from agent_relay.race.model import Race, build_race_view
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
