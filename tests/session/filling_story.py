"""A session whose agents' contexts fill up, driven by hand through the state machine."""

from datetime import datetime, timedelta

from agent_relay.domain.events.session import Event
from agent_relay.domain.inputs import ContextFilled, LegQuiet
from agent_relay.domain.limits import ContextWishes
from agent_relay.domain.values import replace
from agent_relay.session.decision import DecisionContext, Outcome
from agent_relay.session.fold import fold_event
from tests.session.story import NOW, Story

HANDOFF = ContextWishes(mode="handoff", rearm=60, advise=70, draft=80, act=90)


class Filling(Story):
    """`minutes` is the time since the session began; each happening takes a hundredth of one."""

    def __init__(self, wishes: ContextWishes = HANDOFF) -> None:
        self.wishes = wishes
        self.minutes = 0.0
        super().__init__()

    def at(self) -> datetime:
        return NOW + timedelta(minutes=self.minutes)

    def world(self, **changes: object) -> DecisionContext:
        self.minutes += 0.01
        return replace(super().world(), now=self.at(), context=self.wishes, **changes)

    def journal(self, outcome: Outcome) -> None:
        for body in outcome.bodies:
            event = Event(
                len(self.events) + 1, self.at(), self.session.generation if self.session else 0, body
            )
            self.events.append(event)
            self.session = fold_event(self.session, event)
        self.effects = list(outcome.effects)

    def fills(self, used: int, *, room: int = 1000, leg: str = "", at: datetime | None = None) -> "Filling":
        self.happens(ContextFilled(leg or self.leg, used, room, at or self.at()))
        return self

    def turn(self, used: int, *, room: int = 1000) -> "Filling":
        """A turn in which the context grew to `used`; `effects` are those of its end."""
        self.minutes += 1
        self.says("busy")
        self.fills(used, room=room)
        self.says("ready")
        return self

    def quiet(self) -> "Filling":
        self.happens(LegQuiet(self.leg))
        return self

    def relieved(self) -> "Filling":
        """The handoff that was begun is walked to the successor's first prompt."""
        self.take_over()
        return self

    def count(self, name: str) -> int:
        return [event.body.name for event in self.events].count(name)
