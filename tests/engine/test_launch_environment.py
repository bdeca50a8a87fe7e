"""What a leg took along is read by the daemons of other versions, too."""

import json

import pytest

from agent_relay.domain.errors import RelayError
from agent_relay.engine.services import LaunchEnvironment, parse_launch_environment, render_launch_environment

TAKEN = LaunchEnvironment(
    {"HOME": "/home/ann"}, agent="demo", rows=30, cols=100, args=("--fast",), model="m", task="mow the lawn"
)


def test_launch_environment_comes_back_as_it_was_taken() -> None:
    """A successor begins as its user would have begun it."""
    found = parse_launch_environment(render_launch_environment(TAKEN, {"session_id": "7"}))
    assert (found.environ, found.args, found.task) == ({"HOME": "/home/ann"}, ("--fast",), "mow the lawn")
    assert (found.agent, found.rows, found.cols, found.model) == ("demo", 30, 100, "m")
    assert found.values == {"session_id": "7"}


def test_what_a_newer_version_took_along_keeps_no_older_one_from_its_leg() -> None:
    """An agent at work would be left alone after a downgrade; what is not known goes on to the next leg."""
    newer = json.loads(render_launch_environment(TAKEN, {})) | {"colours": {"depth": 24}, "more": "mine"}
    found = parse_launch_environment(json.dumps(newer))
    assert found.environ == {"HOME": "/home/ann"}
    again = json.loads(render_launch_environment(found, {}))
    assert (again["colours"], again["more"]) == ({"depth": 24}, "mine")


def test_an_environment_of_a_version_that_kept_less_is_enough() -> None:
    """Legs of before an upgrade are adopted after it."""
    found = parse_launch_environment('{"environ": {"HOME": "/home/ann"}}')
    assert (found.environ, found.args, found.agent, found.rows) == ({"HOME": "/home/ann"}, (), "", 24)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "7", '{"environ": []}', '{"environ": {"A": 1}}', '{"environ": {}, "args": 7}']
)
def test_what_is_no_launch_environment_is_refused(text: str) -> None:
    """Without the user's environment the next agent would start without its keys."""
    with pytest.raises(RelayError, match="cannot be read"):
        parse_launch_environment(text)
