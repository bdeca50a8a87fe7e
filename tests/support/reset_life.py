"""One session around the reset of a limit: programs, a person and a daemon, by a fake clock."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import TypeVar

from agent_relay.domain.effects import (
    CancelContinue,
    DeliverPacket,
    Effect,
    PublishPacket,
    ShowMessage,
    SpawnLeg,
    StopLeg,
    WakeAt,
)
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import (
    Answered,
    ContinueAnnounced,
    ContinueAsked,
    Delivered,
    HandoffAsked,
    Input,
    LegGone,
    Published,
    ResetPassed,
    Restarted,
    ResumeAsked,
    SignalFound,
    Spawned,
    StateSeen,
)
from agent_relay.domain.limits import (
    NO_QUIET_HOURS,
    Evidence,
    Kind,
    QuietHours,
    Scope,
    Signal,
    Source,
    parse_quiet_hours,
)
from agent_relay.domain.values import AgentName
from agent_relay.session.decision import Availability
from tests.session.story import HERE, Story

BEGAN = datetime(2026, 11, 21, 19, 0, tzinfo=UTC)
RESET = BEGAN + timedelta(hours=2)
OVER = RESET + timedelta(hours=12)
QUIET = parse_quiet_hours("20:30-07:00")
BY_ITSELF = "the first reset has passed"


@dataclass
class Process:
    """An agent's program: limited until the reset, with a timer of its own where it has one."""

    leg: str
    agent: str
    lives: bool = True
    works: bool = False
    timer: bool = False
    asked_to_stop: bool = False


@dataclass
class Life:
    """One session, its agents' programs, its person and its daemon, by a clock that jumps to what is next."""

    random: Random
    now: datetime = BEGAN
    resume: bool = False
    agent_may: bool = True
    quiet: QuietHours = NO_QUIET_HOURS
    has_timer: bool = True
    timer_fails: bool = False
    story: Story = field(default_factory=lambda: Story(("ann", "bob")))
    processes: dict[str, Process] = field(default_factory=dict)
    agenda: list[tuple[datetime, int, Callable[[], None]]] = field(default_factory=list)
    order: "count[int]" = field(default_factory=count)
    epoch: int = 0
    is_up: bool = True
    began_alone: list[str] = field(default_factory=list)
    touched: bool = False
    says: int = 0

    def later(self, do: Callable[[], None], *, at: datetime | None = None, most_s: float = 3.0) -> None:
        """`do` a while after `at`, or after now."""
        moment = max(at or self.now, self.now) + timedelta(seconds=self.random.uniform(0.01, most_s))
        heapq.heappush(self.agenda, (moment, next(self.order), do))

    def tell(self, happened: Input) -> None:
        """The daemon, where one is up, hears it and performs what follows."""
        if not self.is_up:
            return
        self.know()
        before = len(self.story.events)
        try:
            self.story.happens(
                happened,
                now=self.now,
                resume_at_reset=self.resume,
                agent_may_continue=self.agent_may,
                quiet=self.quiet,
            )
        except RelayError:
            return
        for event in self.story.events[before:]:
            if isinstance(event.body, HandoffBegun) and event.body.why == BY_ITSELF:
                self.go_alone("relay")
        for effect in self.story.effects:
            self.perform(effect)

    def know(self) -> None:
        """The daemon looks who could take over now."""
        bob = HERE if self.now >= RESET + timedelta(hours=3) else _rest(RESET + timedelta(hours=3))
        ann = HERE if self.now >= RESET else _rest(RESET)
        self.story.availability = {"ann": ann, "bob": bob}

    def go_alone(self, who: str) -> None:
        """Somebody goes on unattended."""
        self.began_alone.append(who)
        assert not self.quiet.contains(self.now, UTC), f"{who} went on in the quiet hours"
        if who == "agent":
            assert self.agent_may, "an agent went on although its user said no"

    def perform(self, effect: Effect) -> None:
        """What the daemon asked for happens a while later; a daemon that dies meanwhile forgets it."""
        epoch = self.epoch

        def if_same(do: Callable[[], None]) -> Callable[[], None]:
            return lambda: do() if self.epoch == epoch else None

        match effect:
            case WakeAt(at):
                self.later(if_same(lambda: self.tell(ResetPassed())), at=at)
            case StopLeg(leg):
                if leg in self.processes:
                    self.processes[leg].asked_to_stop = True
                self.later(lambda: self.end(leg), most_s=8)
            case SpawnLeg(leg):
                self.later(if_same(lambda: self.perform_spawn(leg)))
            case PublishPacket(handoff):
                number = self.story.now.packets + 1
                done = Published(handoff, "P", number, "1.json", "1.md", "f")
                self.later(if_same(lambda: self.tell(done)), most_s=5)
            case DeliverPacket(handoff, leg):
                self.later(if_same(lambda: self.deliver(handoff, leg)), most_s=5)
            case CancelContinue(leg, at):
                self.later(if_same(lambda: self.cancel_timer(leg, at)), most_s=20)
            case ShowMessage():
                self.says += 1
            case _:
                pass

    def perform_spawn(self, leg: str) -> None:
        """The leg is started."""
        self.spawn(leg)

    def spawn(self, leg: str) -> None:
        """A program starts, unless it was stopped before; whoever lived before is gone by now."""
        agent = next(one.agent for one in self.story.now.legs if one.id == leg)
        if leg not in self.processes:
            self.processes[leg] = Process(leg, agent)
            self.check()
        if not self.processes[leg].lives:
            return
        self.tell(Spawned(leg, 10, 11, 12))
        self.tell(StateSeen(leg, "ready"))

    def deliver(self, handoff: str, leg: str) -> None:
        process = self.processes[leg]
        if process.lives:
            self.tell(Delivered(handoff, leg))
            self.work(process)

    def work(self, process: Process) -> None:
        """It works, or meets its limit, as whoever pays for it decides."""
        if process.agent == "ann" and self.now < RESET:
            self.later(lambda: self.hit(process))
            return
        process.works, process.timer = True, False
        self.check()
        self.later(lambda: self.seen_working(process), most_s=20)

    def seen_working(self, process: Process) -> None:
        if process.lives:
            self.tell(ContinueAnnounced(process.leg, None))
            self.tell(StateSeen(process.leg, "busy"))
            self.tell(Answered(process.leg))

    def hit(self, process: Process) -> None:
        """The limit is heard, its countdown seen a moment later, in whatever order."""
        if not process.lives:
            return
        evidence = Evidence(Source.HOOK, "You've hit it")
        limit = Signal(
            AgentName(process.agent), Kind.LIMIT, Scope.ACCOUNT, evidence, decides=True, resets_at=RESET
        )
        self.later(lambda: self.tell(SignalFound(process.leg, limit)), most_s=2)
        if self.has_timer and not process.timer:
            process.timer = True
            self.later(lambda: self.see_countdown(process), most_s=4)
            fires = RESET + timedelta(seconds=self.random.uniform(62, 92))
            heapq.heappush(self.agenda, (fires, next(self.order), lambda: self.fire(process)))

    def see_countdown(self, process: Process) -> None:
        if process.lives and process.timer:
            self.tell(ContinueAnnounced(process.leg, RESET))

    def fire(self, process: Process) -> None:
        """The agent's own timer: nothing where it was cancelled, or the program is gone or broken."""
        if not (process.lives and process.timer):
            return
        process.timer = False
        if not self.timer_fails:
            self.go_alone("agent")
            self.work(process)

    def cancel_timer(self, leg: str, at: datetime) -> None:
        process = self.processes[leg]
        if process.lives and process.timer and self.now < at:
            process.timer = False
            self.later(lambda: self.tell(ContinueAnnounced(leg, None)))

    def end(self, leg: str) -> None:
        process = self.processes.setdefault(leg, Process(leg, ""))
        process.lives = process.works = process.timer = False
        self.tell(LegGone(leg, "stopped"))

    def check(self) -> None:
        living = [one.leg for one in self.processes.values() if one.lives]
        assert len(living) <= 1, f"two programs at {self.now}: {living}"

    def crash(self) -> None:
        """The daemon dies; the next one is up a while later, and looks at what is there."""
        self.epoch += 1
        self.is_up = False
        self.later(self.take_up, most_s=30)

    def take_up(self) -> None:
        if self.is_up:
            return
        self.is_up = True
        leg = self.story.now.living_leg
        process = self.processes.get(leg.id) if leg is not None else None
        lives = process is not None and process.lives
        self.tell(Restarted(leg_lives=lives, leg_began=process is not None))
        if process is not None and lives:
            self.see_countdown(process)
            if process.works:
                self.seen_working(process)
            else:
                self.tell(StateSeen(process.leg, "ready"))

    def press(self, key: str) -> None:
        """What a person does at their terminal."""
        process = next((one for one in self.processes.values() if one.lives), None)
        match key:
            case "wait":
                self.tell(ResumeAsked())
            case "not":
                self.tell(ResumeAsked(agreed=False))
            case "enter":
                self.touched = True
                self.tell(ContinueAsked())
            case "escape" if process is not None and process.timer:
                self.touched = True
                process.timer = False
                self.later(lambda: self.tell(ContinueAnnounced(process.leg, None)))
            case "prompt" if process is not None and not process.works and not process.asked_to_stop:
                self.touched = self.touched or self.now >= RESET
                self.work(process)
            case "bob":
                self.touched = True
                self.tell(HandoffAsked("bob", force=True))
            case _:
                pass

    def run(self) -> None:
        """From the limit to the next noon."""
        self.story.note_beginning("ann")
        self.spawn(self.story.leg)
        self.tell(StateSeen(self.story.leg, "busy"))
        self.work(self.processes[self.story.leg])
        while self.agenda and self.agenda[0][0] < OVER:
            self.now, _, do = heapq.heappop(self.agenda)
            do()
            self.check()


AnyLife = TypeVar("AnyLife", bound=Life)


def play_all(begin: Callable[[int], AnyLife], check: Callable[[AnyLife], None]) -> list[AnyLife]:
    """Two hundred lives to their end, each as its seed has it; of one that is wrong its journal is told."""
    lives = []
    for seed in range(200):
        lives.append(life := begin(seed))
        try:
            life.run()
            check(life)
        except AssertionError as error:
            lines = [f"{one.body.name} {one.body}"[:150] for one in life.story.events]
            raise AssertionError("\n".join([f"seed {seed}: {error}", *lines])) from error
    return lives


def _rest(until: datetime) -> Availability:
    return Availability(installed=True, resting=True, rests_until=until, scope="account")
