"""An agent that takes its time before it shows anything: the person at its terminal is told."""

from tests.support.mute_agent import mutable_world
from tests.support.seats import seat


def test_an_agent_that_shows_no_prompt_for_ten_seconds_is_told_of_on_its_terminal() -> None:
    """An empty screen looks like a mistake of ours, or of the person's."""
    with mutable_world() as world, seat(world, "agent", "understudy") as person:
        person.wait_for("understudy is still starting: waiting for its prompt")
