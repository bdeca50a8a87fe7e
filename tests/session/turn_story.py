"""A session whose agents work on headless turns, for the tests of what follows from what."""

from agent_relay.domain.events.session import Body
from agent_relay.domain.inputs import LegGone, PromptTaken, TurnAsked
from agent_relay.domain.values import replace
from agent_relay.session.decision import Availability, Outcome
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
        self.happens(TurnAsked(agent, prompt, most, ends))
        return self

    def at_work(self) -> "TurnStory":
        self.spawned()
        self.happens(PromptTaken(self.leg))
        return self

    def take_seat(self, agent: str, *others: str) -> "TurnStory":
        """The agent's turn in a chat with `others`."""
        self.happens(TurnAsked(agent, "talk", ends=True, seat=agent, others=others))
        return self

    def done(self, said: str = "") -> "TurnStory":
        self.happens(LegGone(self.leg, "exited", 0, is_done=True, said=said))
        return self

    def broke(self, why: str = "it fell over") -> "TurnStory":
        self.happens(LegGone(self.leg, "exited", 1, why=why))
        return self

    def note(self, *bodies: Body) -> "TurnStory":
        """These lines are in the journal, too."""
        self.journal(Outcome(bodies))
        return self

    def find(self, name: str) -> int:
        """The number of the first line of that name."""
        return next(event.number for event in self.events if event.body.name == name)

    def rests(self, *agents: str) -> "TurnStory":
        for agent in agents:
            self.availability[agent] = replace(ABLE, resting=True, scope="account")
        return self
