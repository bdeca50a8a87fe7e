"""A session whose agents use the user's budgets, driven by hand through the state machine."""

from datetime import datetime, timedelta

from agent_relay.domain.inputs import BudgetsCounted, LegQuiet
from agent_relay.domain.limits import Mark, Spending
from agent_relay.domain.values import replace
from agent_relay.session.decision import DecisionContext
from tests.session.story import NOW, Story

MIDNIGHT = (NOW + timedelta(hours=5, minutes=40)).isoformat()


def spend(mark: Mark, then: str, *, agent: str = "", day: bool = True, text: str = "used up") -> Spending:
    """How a budget stands that is a day's or a session's."""
    name = f"{agent or 'all'}/{'day' if day else 'session'}/{then}"
    return Spending(name, mark, text, agent, then, "2026-11-21" if day else "", MIDNIGHT if day else "")


class Budgeted(Story):
    """`moment` is now."""

    moment: datetime = NOW

    def world(self, **changes: object) -> DecisionContext:
        return replace(super().world(), **({"now": self.moment} | changes))

    def counts(self, *found: Spending, leg: str = "") -> "Budgeted":
        self.happens(BudgetsCounted(leg or self.leg, found))
        return self

    def quiet(self) -> "Budgeted":
        self.happens(LegQuiet(self.leg))
        return self

    def taken_over(self) -> "Budgeted":
        """The handoff that was begun is walked to the end of the successor's first turn."""
        self.take_over()
        self.says("ready")
        return self

    def count(self, name: str) -> int:
        return [event.body.name for event in self.events].count(name)


def start() -> Budgeted:
    """A session whose first agent waits for a prompt."""
    story = Budgeted()
    story.start()
    return story


def at_work() -> Budgeted:
    """A session whose first agent works."""
    story = start()
    story.says("busy")
    return story
