"""A session takes a headless turn whole, or not at all."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import TurnAsked
from agent_relay.domain.state import State
from agent_relay.engine.services import LaunchEnvironment
from agent_relay.engine.sessions.commands import take_turn
from tests.session.turn_story import TurnStory

if TYPE_CHECKING:
    from agent_relay.engine.sessions.host import Host


def test_a_turn_that_is_refused_leaves_what_the_next_leg_is_given() -> None:
    """Between two legs of a turn nobody lives: the successor must not be given a stranger's prompt."""
    story = TurnStory().take("paint it").at_work()
    story.limit().gone()
    assert (story.now.state, story.now.living_leg) == (State.HANDING_OFF, None)
    asked = Asked(story)
    with pytest.raises(WrongUseError, match="is at work"):
        asyncio.run(take_turn(asked.host, LaunchEnvironment({}), TurnAsked("ann", "burn it")))
    assert asked.taken == []


class Asked:
    """A host that notes what it is given, in the state a story is in."""

    def __init__(self, story: TurnStory) -> None:
        self.taken: list[str] = []
        runner = SimpleNamespace(take=lambda _environment, task: self.taken.append(task))
        self.host = cast("Host", SimpleNamespace(session=story.now, runner=runner, ask=self._ask))

    async def _ask(self, asked: TurnAsked) -> None:
        assert asked.prompt == self.taken[-1]
