"""A session whose agents work on headless turns, for the tests of what follows from what."""

from agent_relay.domain.inputs import LegGone, PromptTaken, TurnAsked
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability
from agent_relay.session.handoffs import HEADLESS
from tests.session.story import Story

ABLE = Availability(installed=True, capabilities=frozenset({HEADLESS}))


class TurnStory(Story):
    """`take` a turn, and the newest leg is `done` or `broke`."""

    def __init__(self, roster: tuple[str, ...] = ("ann", "bob", "cas")) -> None:
        super().__init__(roster)
        self.availability = dict.fromkeys(roster, ABLE)

    def take(
        self, prompt: str = "paint it", *, agent: str = "ann", most: int = 0, ends: bool = True
    ) -> "TurnStory":
        return self.happens(TurnAsked(agent, prompt, most, ends))

    def at_work(self) -> "TurnStory":
        self.spawned()
        return self.happens(PromptTaken(self.leg))

    def take_seat(self, agent: str, *others: str) -> "TurnStory":
        """The agent's turn in a chat with `others`."""
        return self.happens(TurnAsked(agent, "talk", ends=True, seat=agent, others=others))

    def done(self, said: str = "") -> "TurnStory":
        return self.exits(said)

    def broke(self, why: str = "it fell over") -> "TurnStory":
        return self.happens(LegGone(self.leg, "exited", 1, why=why))

    def find(self, name: str) -> int:
        """The number of the first line of that name."""
        return next(event.number for event in self.events if event.body.name == name)

    def rests(self, *agents: str) -> "TurnStory":
        for agent in agents:
            self.availability[agent] = replace(ABLE, resting=True, scope="account")
        return self
