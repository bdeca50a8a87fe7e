"""A session driven by hand through the state machine, for the tests of what follows from what."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from agent_relay.domain.events.session import Event, SessionCreated
from agent_relay.domain.inputs import Delivered, Input, LegGone, Published, SignalFound, Spawned, StateSeen
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.session import Session, Step
from agent_relay.domain.values import AgentName, replace
from agent_relay.session.decision import Availability, DecisionContext, Outcome
from agent_relay.session.fold import fold_event
from agent_relay.session.handoffs import begin_leg
from agent_relay.session.machine import step

if TYPE_CHECKING:
    from agent_relay.domain.effects import Effect

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
HERE = Availability(installed=True)


class Story:
    """A session driven by hand: every event numbered and folded, every effect kept."""

    def __init__(self, roster: tuple[str, ...] = ("ann", "bob", "cas"), task: str = "") -> None:
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.session: Session | None = None
        self.ids = 0
        self.availability = dict.fromkeys(roster, HERE)
        self.journal(Outcome((SessionCreated("S", "/r", "/r", roster, task),)))

    def world(self, **changes: object) -> DecisionContext:
        self.ids += 1
        world = DecisionContext(
            NOW, self.availability, f"H{self.ids}", f"L{self.ids}", {"ann": f"native-{self.ids}"}
        )
        return replace(world, **changes)

    def journal(self, outcome: Outcome) -> None:
        for body in outcome.bodies:
            event = Event(len(self.events) + 1, NOW, self.session.generation if self.session else 0, body)
            self.events.append(event)
            self.session = fold_event(self.session, event)
        self.effects = list(outcome.effects)

    def refold(self, events: list[Event]) -> "Story":
        """The session of `events` alone, as a daemon that was killed after the last of them left it."""
        self.events, self.session = list(events), None
        for event in events:
            self.session = fold_event(self.session, event)
        return self

    def start(self, agent: str = "ann") -> "Story":
        return self.note_beginning(agent).spawned().says("ready")

    def note_beginning(self, agent: str) -> "Story":
        """The first leg is in the journal, and nowhere else yet."""
        self.journal(begin_leg(self.now, agent, self.world()))
        return self

    @property
    def now(self) -> Session:
        assert self.session is not None
        return self.session

    @property
    def leg(self) -> str:
        assert self.now.leg is not None
        return self.now.leg.id

    def happens(self, happened: Input, **changes: object) -> "Story":
        self.journal(step(self.now, happened, self.world(**changes)))
        return self

    def spawned(self) -> "Story":
        return self.happens(Spawned(self.leg, 10, 11, 12))

    def says(self, state: str) -> "Story":
        return self.happens(StateSeen(self.leg, state))

    def limit(self, scope: Scope = Scope.ACCOUNT, **changes: object) -> "Story":
        agent = AgentName(self.now.agent)
        signal = Signal(
            agent, Kind.LIMIT, scope, Evidence(Source.HOOK, "You've hit it"), decides=True, resets_at=RESET
        )
        signal = replace(signal, **changes)
        if signal.decides and scope in (Scope.ACCOUNT, Scope.MODEL, Scope.BILLING):
            rest = Availability(installed=True, resting=True, rests_until=signal.resets_at, scope=scope)
            self.availability[agent] = rest
        return self.happens(SignalFound(self.leg, signal))

    def gone(self, how: str = "stopped", status: int = 0) -> "Story":
        return self.happens(LegGone(self.leg, how, status))

    def published(self) -> "Story":
        assert self.now.handoff is not None
        return self.happens(Published(self.now.handoff.id, "P1", 1, "1.json", "1.md", "f"))

    def take_over(self) -> "Story":
        """The handoff that was begun is walked to the successor's first prompt."""
        self.gone().published().spawned().says("ready")
        assert self.now.handoff is not None
        return self.happens(Delivered(self.now.handoff.id, self.leg)).says("busy")

    def to_step(self, wanted: Step) -> "Story":
        """Walk a failover up to `wanted`."""
        self.limit()
        walk = {
            Step.BEGUN: lambda: self,
            Step.STOPPED: self.gone,
            Step.SPAWNING: self.published,
            Step.SPAWNED: self.spawned,
            Step.DELIVERED: lambda: self.says("ready").happens(Delivered(self.now.handoff.id, self.leg)),
        }
        for at, go in walk.items():
            go()
            if at is wanted:
                break
        return self

    def names(self, *, last: int) -> list[str]:
        return [event.body.name for event in self.events[-last:]]


def reset_window(story: Story) -> Story:
    """The reset of the preferred agent has come."""
    story.availability["ann"] = HERE
    return story
