"""A room takes a headless turn whole, or not at all."""

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.inputs import TurnAsked
from agent_relay.domain.state import State
from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.change_notifier import ChangeNotifier
from tests.logic.turn_story import TurnStory

if TYPE_CHECKING:
    from agent_relay.engine._effect_runner import EffectRunner
    from agent_relay.engine._host import Host
    from agent_relay.engine.sessions._notifications import SessionNotifier


def test_a_turn_that_is_refused_leaves_what_the_next_leg_is_given() -> None:
    """Between two legs of a turn nobody lives: the successor must not be given a stranger's prompt."""
    story = TurnStory().take("paint it").at_work()
    story.limit().gone()
    assert (story.now.state, story.now.living_leg) == (State.HANDING_OFF, None)
    asked = Asked(story)
    with pytest.raises(WrongUseError, match="is at work"):
        asyncio.run(asked.room.take_turn(LaunchEnvironment({}), TurnAsked("ann", "burn it")))
    assert asked.taken == []


class Asked:
    """A room that notes what it is given, in the state a story is in."""

    def __init__(self, story: TurnStory) -> None:
        self.taken: list[str] = []
        self.host = SimpleNamespace(session=story.now, refusal="", is_idle=True, ask=self._ask)
        stage = SimpleNamespace(take=lambda _luggage, task: self.taken.append(task), is_collecting=False)
        notifying = cast("SessionNotifier", SimpleNamespace())
        self.room = ActiveSession(
            cast("Host", self.host), cast("EffectRunner", stage), ChangeNotifier(), notifying
        )

    async def _ask(self, asked: TurnAsked) -> None:
        assert asked.prompt == self.taken[-1]
