"""Two hundred nights in which the preferred agent's limit ends, with everything around that in random order.

The daemon is killed at any moment, the machine sleeps, its clock is set back: the agent returns exactly once.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from agent_relay.domain.effects import AwaitQuiet, Effect, WakeAt
from agent_relay.domain.errors import RelayError
from agent_relay.domain.events.session import ConsentUsed
from agent_relay.domain.events.work import HandoffBegun
from agent_relay.domain.inputs import Input, LegQuiet, ResetPassed, StateSeen
from agent_relay.session.decision import Availability
from tests.session.story import HERE
from tests.support.reset_life import OVER, RESET, Life, Process, play_all

GRACE = timedelta(seconds=30)
LOOK = timedelta(seconds=30)


@dataclass
class Night(Life):
    """One session that was handed over at a limit, with a clock that may be wrong by `skew`."""

    skew: timedelta = timedelta(0)

    @property
    def wall(self) -> datetime:
        """What the machine's clock shows."""
        return self.now + self.skew

    def tell(self, happened: Input) -> None:
        """The daemon, where one is up, hears it and performs what follows."""
        if not self.is_up:
            return
        rest = Availability(installed=True, resting=True, rests_until=RESET, scope="account")
        is_limited = self.story.now.limit is not None and self.wall < RESET
        self.story.availability = {"ann": rest if is_limited else HERE, "bob": HERE}
        try:
            self.story.happens(happened, now=self.wall, return_mode="auto", reset_grace=GRACE)
        except RelayError:
            return
        for effect in self.story.effects:
            self.perform(effect)

    def perform(self, effect: Effect) -> None:
        """As in every life; a moment is waited for by the clock that is shown, looked at now and then."""
        epoch = self.epoch
        match effect:
            case WakeAt(at):
                self.look(at, lambda: self.epoch == epoch)
            case AwaitQuiet(leg):
                self.later(lambda: self.fall_quiet(leg) if self.epoch == epoch else None, most_s=60)
            case _:
                super().perform(effect)

    def look(self, at: datetime, is_same: Callable[[], bool]) -> None:
        if not is_same():
            return
        if self.wall >= at:
            self.tell(ResetPassed())
        else:
            self.later(lambda: self.look(at, is_same), at=self.now + min(at - self.wall, LOOK), most_s=0.02)

    def fall_quiet(self, leg: str) -> None:
        process = self.processes[leg]
        if process.lives and not process.works:
            self.tell(LegQuiet(leg))

    def seen_working(self, process: Process) -> None:
        """It works for some minutes, then waits for its next prompt."""
        super().seen_working(process)
        self.later(lambda: self.rest_at_prompt(process), most_s=1800)

    def rest_at_prompt(self, process: Process) -> None:
        if process.lives:
            process.works = False
            self.tell(StateSeen(process.leg, "ready"))

    def sleep(self, hours: float) -> None:
        """Nothing runs, and time passes: all that was due happens afterwards."""
        woken = self.now + timedelta(hours=hours)
        due = [(max(at, woken), number, do) for at, number, do in self.agenda]
        heapq.heapify(due)
        self.agenda, self.now = due, woken

    def set_back(self, hours: float) -> None:
        self.skew -= timedelta(hours=hours)


def _begin(seed: int) -> Night:
    random = Random(seed)  # noqa: S311 - which of many orders is tried, and the same one again
    night = Night(random, has_timer=False)

    def add(do: Callable[[], None], at: datetime) -> None:
        heapq.heappush(night.agenda, (at, next(night.order), do))

    for _ in range(random.choice([0, 1, 3, 6])):
        spread = random.choice([60, 600, 5400])
        add(night.crash, RESET + timedelta(seconds=random.uniform(-spread, spread)))
    if random.random() < 0.3:
        hours = random.uniform(0.1, 4)
        add(lambda: night.sleep(hours), RESET + timedelta(seconds=random.uniform(-5400, 600)))
    if random.random() < 0.3:
        back = random.choice([0.5, 1, 3])
        add(lambda: night.set_back(back), RESET + timedelta(seconds=random.uniform(-5400, 600)))
    for _ in range(random.choice([0, 1, 2])):
        add(lambda: night.press("prompt"), RESET + timedelta(seconds=random.uniform(-3600, 3600)))
    return night


def _check_end(night: Night) -> None:
    bodies = [event.body for event in night.story.events]
    assert [one.to_agent for one in bodies if isinstance(one, HandoffBegun)] == ["bob", "ann"]
    assert [one.consent for one in bodies if isinstance(one, ConsentUsed)] == ["return"]
    assert (night.story.now.agent, night.story.now.handoff) == ("ann", None)
    assert night.now < OVER


def test_the_preferred_agent_returns_exactly_once() -> None:
    """Not at all, and a night of the better agent is lost; twice, and its work is stopped for nothing."""
    play_all(_begin, _check_end)
