"""A room takes a headless turn whole, or not at all."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.app.legs import Luggage
from agent_relay.app.pulse import Pulse
from agent_relay.app.room import Room
from agent_relay.domain.effect import TurnAsked
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.session import State
from tests.logic.turn_story import TurnStory

if TYPE_CHECKING:
    from agent_relay.app.host import Host
    from agent_relay.app.notifying import Notifying
    from agent_relay.app.stage import Stage


def test_a_turn_that_is_refused_leaves_what_the_next_leg_is_given() -> None:
    """Between two legs of a turn nobody lives: the successor must not be given a stranger's prompt."""
    story = TurnStory().take("paint it").at_work()
    story.limit().gone()
    assert (story.now.state, story.now.living_leg) == (State.HANDING_OFF, None)
    asked = Asked(story)
    with pytest.raises(WrongUseError, match="is at work"):
        asyncio.run(asked.room.take_turn(Luggage({}), TurnAsked("ann", "burn it")))
    assert asked.taken == []


class Asked:
    """A room that notes what it is given, in the state a story is in."""

    def __init__(self, story: TurnStory) -> None:
        self.taken: list[str] = []
        self.host = SimpleNamespace(session=story.now, refusal="", is_idle=True, ask=self._ask)
        stage = SimpleNamespace(take=lambda _luggage, task: self.taken.append(task), is_collecting=False)
        notifying = cast("Notifying", SimpleNamespace())
        self.room = Room(cast("Host", self.host), cast("Stage", stage), Pulse(), notifying)

    async def _ask(self, asked: TurnAsked) -> None:
        assert asked.prompt == self.taken[-1]
