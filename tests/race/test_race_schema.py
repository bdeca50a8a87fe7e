"""The published schema of `race --json` and the view it is of do not part."""

from datetime import timedelta

import pytest
from jsonschema import Draft202012Validator, ValidationError

from agent_relay.race._events import RaceScored
from agent_relay.race.model import build_race_view
from agent_relay.race.schema import RaceView, RunnerView, build_race_schema
from tests.support.races import BEGAN, begin, settle, start, tell


def test_the_schema_allows_a_race_at_any_time_and_names_every_field_of_it() -> None:
    """A field that is not in the schema is one no script may rely on."""
    allowed = Draft202012Validator(build_race_schema())
    decided = RaceScored(1, ("1", "2"), ("test passed", "failed the test"))
    for race in (
        tell(*begin("ann", "bob")),
        tell(*begin("ann", "bob"), *start(1)),
        tell(*begin("ann", "bob"), *settle(1), *settle(2, test=1), decided),
    ):
        view = build_race_view(race, BEGAN + timedelta(minutes=1)) | {"active": True, "trouble": ""}
        allowed.validate(view)
        assert set(view) == set(RaceView.model_fields)
        runners = view["runners"]
        assert isinstance(runners, list)
        assert set(runners[0]) | {"at_work", "doing"} == set(RunnerView.model_fields)
    with pytest.raises(ValidationError):
        allowed.validate(view | {"winner": 1})
