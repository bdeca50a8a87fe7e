"""A session whose user wants the next agent ready, for the tests of standbys."""

from typing import TYPE_CHECKING

from agent_relay.domain.inputs import Input, SignalFound, Spawned, StateSeen
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.values import AgentName, replace
from tests.session.story import Story

if TYPE_CHECKING:
    from agent_relay.session.decision import DecisionContext

NEAR = Evidence(Source.HOOK, "92% used")


class WarmStory(Story):
    """A session whose user wants the next agent ready; `setups` are what each would be started with."""

    def __init__(self, roster: tuple[str, ...] = ("ann", "bob", "cas")) -> None:
        self.setups = {"bob": "as it is", "ann": "as it is"}
        super().__init__(roster)

    def world(self, **changes: object) -> "DecisionContext":
        return super().world(**{"standbys": self.setups} | changes)

    def near(self, **changes: object) -> "WarmStory":
        self.limit(Scope.WARNING, **({"kind": Kind.NEAR_LIMIT, "evidence": NEAR} | changes))
        return self

    @property
    def ahead(self) -> str:
        assert self.now.standby is not None
        return self.now.standby.leg.id

    def hears(self, happened: Input, **changes: object) -> "WarmStory":
        self.happens(happened, **changes)
        return self

    def of_bob(self, **changes: object) -> "WarmStory":
        """What the standby's screen or records say."""
        signal = Signal(AgentName("bob"), Kind.LIMIT, Scope.ACCOUNT, NEAR, decides=True)
        return self.hears(SignalFound(self.ahead, replace(signal, **changes)))


def warm() -> WarmStory:
    """An agent at work near its limit; the next one waits for a prompt."""
    story = WarmStory()
    story.start().says("busy")
    story.near()
    ahead = story.ahead
    return story.hears(Spawned(ahead, 20, 21, 22)).hears(StateSeen(ahead, "ready"))
