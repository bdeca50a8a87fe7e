"""A switch between two real agents, for tests of what a person sees and types: pairs, words and the bar."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Protocol, TypeVar

from agent_relay.domain.events.session import Event
from tests.support import real_seeds
from tests.support.provider.steps import Step, say
from tests.support.real import World
from tests.support.real_launch import AGENTS
from tests.support.real_work import LIMITS, find_journals, order, read_all_events

TASK = "Make add() in calc.py right; test_calc.py shows what is wrong."
GOES_ON = "I pick up where it stopped: add() must return a + b."
PAIRS = tuple(permutations(AGENTS, 2))
SIZES = ((24, 80), (40, 120))
Case = TypeVar("Case")


class Shown(Protocol):
    """A terminal whose rows can be looked at while something is waited for."""

    @property
    def rows(self) -> list[str]:
        """Every row shown now, the lowest last."""

    def wait_until(self, holds: Callable[[], bool], what: str) -> None:
        """Return as soon as `holds()`, which is asked many times a second."""


@dataclass
class Looks:
    """The bottom line at every look at a switch, from the bar's appearance until the successor works."""

    bar: str
    rows: list[str] = field(default_factory=list)
    begun_at: datetime | None = None
    begun_s: float = 0.0
    lasted_s: float = 0.0

    @property
    def unreadable(self) -> list[str]:
        """The rows in which the bar cannot be read."""
        return [row for row in self.rows if self.bar not in row]

    def describe(self, world: World) -> dict[str, object]:
        """What a report of the run tells: how many looks, how many a second, how soon the bar was seen."""
        decided = find_event(world, "handoff.begun")
        late = self.begun_at - decided.at if decided and self.begun_at else timedelta()
        return {
            "looks": len(self.rows),
            "looks a second": round(len(self.rows) / max(self.lasted_s, 0.001), 1),
            "seen after ms": round(late.total_seconds() * 1000),
        }


def name_value(value: Sequence[object]) -> str:
    """Return how pytest calls a pair, a size or an agent."""
    return value if isinstance(value, str) else "-".join(map(str, value))


def prepare_switch(world: World, first: str, second: str, *then: Step) -> None:
    """`first` meets its limit at its task; `second` takes over, and hears `then` when it asks more."""
    real_seeds.free_hands(world.home)
    order(world, first, second)
    world.play(first, LIMITS[first])
    world.play(second, say(GOES_ON), *then)


def name_bar(first: str, second: str) -> str:
    """What can be read of the bar at every moment of this switch."""
    return f"{first} → {second} ·"


def find_event(world: World, name: str) -> Event | None:
    """The first line of that name in the journal of the project's one session."""
    found = (
        [event for event in read_all_events(world) if event.body.name == name] if find_journals(world) else []
    )
    return found[0] if found else None


def watch_bar(world: World, terminal: Shown, first: str, second: str) -> Looks:
    """Look at the bottom line from the bar's first appearance on, until the successor works."""
    looks = Looks(name_bar(first, second))

    def look() -> bool:
        row = terminal.rows[-1]
        if looks.rows or row.lstrip().startswith(("relay:", f"{first} →")):
            if not looks.rows:
                looks.begun_at, looks.begun_s = datetime.now(UTC), time.monotonic()
            # Looked at before the journal: a bar taken away meanwhile was taken away after this look.
            is_over = find_event(world, "handoff.confirmed") is not None
            looks.lasted_s = time.monotonic() - looks.begun_s
            if not is_over:
                looks.rows.append(row)
            return is_over
        assert find_event(world, "handoff.stopped") is None, "the predecessor ended before the bar was shown"
        return False

    terminal.wait_until(look, f"{second} to work")
    return looks
