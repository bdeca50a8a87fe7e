"""A conversation a person began without relay, its program, and several terminals that want it adopted."""

import heapq
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random

from agent_relay.domain.errors import RelayError
from agent_relay.domain.facts import NativeSession
from agent_relay.domain.inputs import HandoffAsked, LegGone
from agent_relay.domain.state import State
from agent_relay.domain.values import replace
from agent_relay.session.decision import Outcome
from agent_relay.session.machine import step
from agent_relay.session.ownership import build_history, check_program, is_only_adopted
from tests.session.story import Story
from tests.support.reset_life import BEGAN, OVER, RESET, Life, Process

ROSTER = ("ann", "bob")
NATIVE = "native"


@dataclass
class Client:
    """A terminal that wants `agent` to go on with ann's conversation; `outcome` is how that ended."""

    agent: str
    force: bool
    outcome: str = ""


@dataclass
class AdoptedLife(Life):
    """As a life, but ann's program was started by its user: relay sees whether it runs, and no more.

    One client at a time is let in, as the daemon does it; a client whose daemon died asks again.
    """

    runs: bool = True
    bob_can: bool = True
    clients: list[Client] = field(default_factory=list)
    waiting: list[Client] = field(default_factory=list)
    inside: Client | None = None
    is_adopted: bool = False
    ended_by_us: bool = False

    @property
    def native(self) -> Process:
        """The program the user started."""
        return self.processes[NATIVE]

    def know(self) -> None:
        """As any daemon; bob may be signed out for good."""
        super().know()
        if not self.bob_can:
            self.story.availability["bob"] = replace(self.story.availability["bob"], signed_in=False)

    def perform_spawn(self, leg: str) -> None:
        """The leg starts, unless the user's own program still has what was adopted."""
        if is_only_adopted(self.story.now):
            try:
                check_program("ann", "/r", self._list_pids(), successor="bob", session="S", force=False)
            except RelayError as error:
                self.tell(LegGone(leg, "unstarted", why=error.sentence))
                return
        super().perform_spawn(leg)

    def ask(self, client: Client) -> None:
        """The client's command reaches the daemon, or is tried again by its user."""
        if not self.is_up:
            self.later(partial(self.ask, client), most_s=60)
            return
        self.waiting.append(client)
        self._let_in()

    def crash(self) -> None:
        """The daemon dies with what it was asked for; those who asked ask again."""
        again = [*self.waiting, *([self.inside] if self.inside is not None else [])]
        self.waiting, self.inside = [], None
        super().crash()
        for client in again:
            self.later(partial(self.ask, client), most_s=90)

    def take_up(self) -> None:
        """A session that has ended is left as it is."""
        if self.is_adopted and self.story.now.state is not State.ENDED:
            super().take_up()
        self.is_up = True

    def run(self) -> None:
        """From the limit to the next noon."""
        while self.agenda and self.agenda[0][0] < OVER:
            self.now, _, do = heapq.heappop(self.agenda)
            do()
            self.check()

    def begin(self) -> None:
        """The user's program met its limit, and waits for its reset; or was quit since."""
        self.processes[NATIVE] = Process(NATIVE, "ann", lives=self.runs, timer=self.runs and self.has_timer)
        if self.native.timer:
            fires = RESET + timedelta(seconds=self.random.uniform(62, 92))
            heapq.heappush(self.agenda, (fires, next(self.order), self._fire_native))

    def _fire_native(self) -> None:
        """Relay's wishes are nothing to a program it does not know."""
        if self.native.lives and self.native.timer:
            self.native.timer = False
            self.native.works = not self.timer_fails

    def _list_pids(self) -> list[int]:
        return [4711] if self.native.lives else []

    def _let_in(self) -> None:
        if self.inside is None and self.waiting:
            self.inside = self.waiting.pop(0)
            self._soon(partial(self._open, self.inside))

    def _soon(self, do: partial[None], *, most_s: float = 2.0) -> None:
        """A while later, unless the daemon dies before."""
        epoch = self.epoch
        self.later(lambda: do() if self.epoch == epoch else None, most_s=most_s)

    def _leave(self, client: Client, outcome: str) -> None:
        client.outcome = outcome
        self.inside = None
        self._let_in()

    def _open(self, client: Client) -> None:
        """The session at work here is the client's; else ann's conversation becomes a new one."""
        if self.is_adopted and self.story.now.state is not State.ENDED:
            self._go_on(client)
            return
        try:
            check_program("ann", "/r", self._list_pids(), successor=client.agent, force=client.force)
        except RelayError:
            self._leave(client, "refused")
            return
        ids, self.story = self.story.ids, Story(ROSTER)
        self.story.ids = ids
        native = NativeSession("/t.jsonl", "N", "/r", "", self.now)
        self.story.journal(Outcome(build_history("A1", "ann", native)))
        self.is_adopted = True
        self._soon(partial(self._go_on, client))

    def _go_on(self, client: Client) -> None:
        session, asked = self.story.now, HandoffAsked(client.agent, force=client.force)
        living = session.living_leg
        if living is not None and living.agent == client.agent:
            self._leave(client, "attached")
            return
        if not is_only_adopted(session):
            self._leave(client, "asked" if self._hear(asked) else "refused")
            return
        try:
            must_end = check_program(
                "ann", "/r", self._list_pids(), successor=client.agent, session="S", force=client.force
            )
            if must_end:
                self.know()
                step(session, asked, self.story.world(now=self.now))
        except RelayError:
            self._leave(client, "refused")
            return
        if must_end:
            self._soon(partial(self._end_native, client, asked), most_s=8)
        else:
            self._leave(client, "asked" if self._hear(asked) else "refused")

    def _end_native(self, client: Client, asked: HandoffAsked) -> None:
        self.native.lives = self.native.works = self.native.timer = False
        self.ended_by_us = True
        self._soon(partial(self._ask_machine, client, asked))

    def _ask_machine(self, client: Client, asked: HandoffAsked) -> None:
        self._leave(client, "asked" if self._hear(asked) else "refused")

    def _hear(self, asked: HandoffAsked) -> bool:
        """Whether the session did as it was asked."""
        before = len(self.story.events)
        self.touched = True
        self.tell(asked)
        return len(self.story.events) > before


def begin_adopted(seed: int) -> AdoptedLife:
    """A life with what its user and its terminals do, before, at and after the reset."""
    random = Random(seed)  # noqa: S311 - which of many orders is tried, and the same one again
    life = AdoptedLife(
        random,
        now=BEGAN,
        resume=random.random() < 0.4,
        has_timer=random.random() < 0.8,
        timer_fails=random.random() < 0.2,
        runs=random.random() < 0.7,
        bob_can=random.random() < 0.8,
    )
    life.begin()
    for _ in range(random.randint(1, 4)):
        client = Client(random.choice(["bob", "bob", "ann"]), force=random.random() < 0.6)
        life.clients.append(client)
        heapq.heappush(life.agenda, (_choose_moment(random), next(life.order), partial(life.ask, client)))
    for _ in range(random.choice([0, 0, 1, 2])):
        heapq.heappush(life.agenda, (_choose_moment(random), next(life.order), life.crash))
    return life


def _choose_moment(random: Random) -> datetime:
    """Long before the reset, about then, while the program's own prompt is due, or in the morning."""
    span = random.choice([(-5400, -60), (-10, 10), (55, 95), (100, 20_000)])
    return RESET + timedelta(seconds=random.uniform(*span))
