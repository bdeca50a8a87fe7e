"""A session driven by hand through the state machine, for the tests of what follows from what."""

import copy
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from agent_relay.domain.effects import AwaitQuiet, DeliverPacket, PublishPacket, SpawnLeg, StopLeg, WakeAt
from agent_relay.domain.events.session import Body, Event, SessionCreated
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import (
    BudgetsCounted,
    ContextFilled,
    Delivered,
    HandoffAsked,
    Input,
    LegGone,
    LegQuiet,
    PromptTaken,
    Published,
    ResetPassed,
    SignalFound,
    Spawned,
    StateSeen,
)
from agent_relay.domain.limits import ContextWishes, Evidence, Kind, Mark, Scope, Signal, Source, Spending
from agent_relay.domain.session import Handoff, Session, Step, Terms
from agent_relay.domain.values import AgentName, replace
from agent_relay.session.decision import Availability, DecisionContext, Outcome
from agent_relay.session.fold import fold_event
from agent_relay.session.handoffs import begin_leg
from agent_relay.session.machine import step

if TYPE_CHECKING:
    from agent_relay.domain.effects import Effect

NOW = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)
RESET = NOW + timedelta(hours=3)
MIDNIGHT = (NOW + timedelta(hours=5, minutes=40)).isoformat()
HERE = Availability(installed=True)
RESTS = Availability(installed=True, resting=True, rests_until=NOW + timedelta(hours=1))
TERMS = Terms(("a door",), ("it opens",), ("no nails",), "high", (), "cas", ("why?",))
HANDOFF = ContextWishes(mode="handoff", rearm=60, advise=70, draft=80, act=90)
NEAR = Evidence(Source.HOOK, "You've used 92% of your session limit")


class Story:
    """A session driven by hand: every event numbered and folded, every effect kept.

    `given` is what its world has beside agents; `moment` is now, and goes on by `pace` as things happen.
    """

    def __init__(
        self, roster: tuple[str, ...] = ("ann", "bob", "cas"), task: str = "", **given: object
    ) -> None:
        self.events: list[Event] = []
        self.effects: list[Effect] = []
        self.session: Session | None = None
        self.ids = 0
        self.moment, self.pace = NOW, timedelta()
        self.given = given
        self.availability = dict.fromkeys(roster, HERE)
        self.note(SessionCreated("S", "/r", "/r", roster, task))

    def world(self, **changes: object) -> DecisionContext:
        self.ids += 1
        self.moment += self.pace
        world = DecisionContext(
            self.moment, self.availability, f"H{self.ids}", f"L{self.ids}", {"ann": f"native-{self.ids}"}
        )
        return replace(world, **{**self.given, **changes})

    def journal(self, outcome: Outcome) -> None:
        for body in outcome.bodies:
            generation = self.session.generation if self.session else 0
            event = Event(len(self.events) + 1, self.moment, generation, body)
            self.events.append(event)
            self.session = fold_event(self.session, event)
        self.effects = list(outcome.effects)

    def note(self, *bodies: Body) -> Self:
        """These lines are in the journal, too."""
        self.journal(Outcome(bodies))
        return self

    def refold(self, events: list[Event]) -> Self:
        """The session of `events` alone, as a daemon that was killed after the last of them left it."""
        self.events, self.session = list(events), None
        for event in events:
            self.session = fold_event(self.session, event)
        return self

    def cut(self, kept: int) -> Self:
        """Another story, of the first `kept` lines alone; less than none are counted from the end."""
        left = copy.copy(self)
        left.ids = 100
        return left.refold(self.events[:kept])

    @property
    def now(self) -> Session:
        assert self.session is not None
        return self.session

    @property
    def leg(self) -> str:
        assert self.now.leg is not None
        return self.now.leg.id

    @property
    def ahead(self) -> str:
        """The leg of the agent that was started ahead."""
        assert self.now.standby is not None
        return self.now.standby.leg.id

    @property
    def handoff(self) -> Handoff:
        """The one under way, or that can be tried again, or was made last."""
        handoff = self.now.handoff or self.now.retriable or self.now.done[-1]
        assert handoff is not None
        return handoff

    @property
    def begun(self) -> HandoffBegun:
        """The newest handoff's first event."""
        return next(event.body for event in reversed(self.events) if isinstance(event.body, HandoffBegun))

    def names(self, *, last: int) -> list[str]:
        return [event.body.name for event in self.events[-last:]]

    def count(self, name: str) -> int:
        return [event.body.name for event in self.events].count(name)

    def happens(self, happened: Input, **changes: object) -> Self:
        self.journal(step(self.now, happened, self.world(**changes)))
        return self

    def note_beginning(self, agent: str) -> Self:
        """The first leg is in the journal, and nowhere else yet."""
        self.journal(begin_leg(self.now, agent, self.world()))
        return self

    def start(self, agent: str = "ann") -> Self:
        return self.note_beginning(agent).spawned().says("ready")

    def spawned(self) -> Self:
        return self.happens(Spawned(self.leg, 10, 11, 12))

    def says(self, state: str, **changes: object) -> Self:
        return self.happens(StateSeen(self.leg, state), **changes)

    def limit(self, scope: Scope = Scope.ACCOUNT, **changes: object) -> Self:
        agent = AgentName(self.now.agent)
        signal = Signal(
            agent, Kind.LIMIT, scope, Evidence(Source.HOOK, "You've hit it"), decides=True, resets_at=RESET
        )
        signal = replace(signal, **changes)
        if signal.decides and scope in (Scope.ACCOUNT, Scope.MODEL, Scope.BILLING):
            rest = Availability(installed=True, resting=True, rests_until=signal.resets_at, scope=scope)
            self.availability[agent] = rest
        return self.happens(SignalFound(self.leg, signal))

    def near(self, **changes: object) -> Self:
        """The agent at work says that it is near a limit."""
        return self.limit(Scope.WARNING, **({"kind": Kind.NEAR_LIMIT, "evidence": NEAR} | changes))

    def gone(self, how: str = "stopped", status: int = 0) -> Self:
        return self.happens(LegGone(self.leg, how, status))

    def published(self) -> Self:
        assert self.now.handoff is not None
        return self.happens(Published(self.now.handoff.id, "P1", 1, "1.json", "1.md", "f"))

    def delivered(self) -> Self:
        return self.happens(Delivered(self.handoff.id, self.leg))

    def quiet(self, **changes: object) -> Self:
        """Nobody types at the prompt."""
        return self.happens(LegQuiet(self.leg), **changes)

    def succeeded(self) -> Self:
        """The predecessor has stopped, and its successor works without its packet."""
        return self.gone().published().spawned().says("ready").says("busy")

    def take_over(self) -> Self:
        """The handoff that was begun is walked to the successor's first prompt."""
        return self.gone().published().spawned().says("ready").delivered().says("busy")

    def to_step(self, wanted: Step, **changes: object) -> Self:
        """Walk a failover up to `wanted`; `changes` are those of its limit."""
        return self.limit(**changes).walk_to(wanted)

    def walk_to(self, wanted: Step) -> Self:
        """Walk the handoff that was begun up to `wanted`."""
        walk = {
            Step.BEGUN: lambda: self,
            Step.STOPPED: self.gone,
            Step.SPAWNING: self.published,
            Step.SPAWNED: self.spawned,
            Step.DELIVERED: lambda: self.says("ready").delivered(),
        }
        for at, go in walk.items():
            go()
            if at is wanted:
                break
        return self

    def perform(self, **world: object) -> Self:  # noqa: C901 - one arm an effect
        """Every effect is performed, agents do as they are told; moments come where there is a `world`."""
        for _ in range(12):
            leg = self.now.living_leg
            match self.effects[-1:]:
                case [StopLeg()]:
                    self.gone()
                case [PublishPacket()]:
                    self.published()
                case [SpawnLeg()]:
                    self.spawned()
                    if leg and leg.headless:
                        self.happens(PromptTaken(self.leg)).exits()
                    else:
                        self.says("ready")
                case [DeliverPacket()]:
                    self.delivered().says("busy")
                case [WakeAt()] if world:
                    self.happens(ResetPassed(), **world)
                case [AwaitQuiet()] if world:
                    self.quiet(**world)
                case _ if leg is not None and leg.headless and leg.child_pid:
                    self.exits()
                case _ if self.now.handoff is not None and self.now.handoff.step is Step.SPAWNED:
                    self.says("ready")
                case _:
                    break
        return self

    def exits(self, said: str = "") -> Self:
        """The headless turn is done."""
        return self.happens(LegGone(self.leg, "exited", 0, is_done=True, said=said))

    def counts(self, *found: Spending, leg: str = "") -> Self:
        """This is what the agent used of the user's budgets."""
        return self.happens(BudgetsCounted(leg or self.leg, found))

    def fills(self, used: int, *, room: int = 1000, leg: str = "", at: datetime | None = None) -> Self:
        """The agent's context holds so much."""
        return self.happens(ContextFilled(leg or self.leg, used, room, at or self.moment))

    def turn(self, used: int, *, room: int = 1000) -> Self:
        """A turn in which the context grew to `used`; `effects` are those of its end."""
        return self.wait(1).says("busy").fills(used, room=room).says("ready")

    def wait(self, minutes: float) -> Self:
        self.moment += timedelta(minutes=minutes)
        return self


def filling(context: ContextWishes = HANDOFF) -> Story:
    """A session whose agents' contexts fill up: its clock goes on."""
    story = Story(context=context)
    story.pace = timedelta(minutes=0.01)
    return story.start()


def begin_warm() -> Story:
    """A session whose user wants the next agent ready: `given` says what each would be started with."""
    return Story(standbys={"bob": "as it is", "ann": "as it is"}).start()


def warm() -> Story:
    """An agent at work near its limit; the next one waits for a prompt."""
    story = begin_warm().says("busy").near()
    ahead = story.ahead
    return story.happens(Spawned(ahead, 20, 21, 22)).happens(StateSeen(ahead, "ready"))


def asked(step: Step, terms: Terms = TERMS) -> Story:
    """A handoff from ann to bob that somebody asked for, at `step`."""
    return Story().start().happens(HandoffAsked("bob", terms=terms)).walk_to(step)


def made(terms: Terms = TERMS) -> Story:
    """A handoff from ann to bob that was made."""
    return asked(Step.DELIVERED, terms).says("busy")


def spend(mark: Mark, then: str, *, agent: str = "", day: bool = True, text: str = "used up") -> Spending:
    """How a budget stands that is a day's or a session's."""
    name = f"{agent or 'all'}/{'day' if day else 'session'}/{then}"
    return Spending(name, mark, text, agent, then, "2026-11-21" if day else "", MIDNIGHT if day else "")


def reset_window(story: Story) -> Story:
    """The reset of the preferred agent has come."""
    story.availability["ann"] = HERE
    return story
