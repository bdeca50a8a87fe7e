"""Races told as lists of events, for tests of what follows from them."""

from datetime import UTC, datetime, timedelta

from agent_relay.race._events import (
    RaceBegun,
    RaceBody,
    RaceCarried,
    RaceEvent,
    RunnerEnded,
    RunnerMeasured,
    RunnerPlaced,
    RunnerPlacing,
    RunnerStarted,
    RunnerStarting,
    RunnerTested,
    RunnerTesting,
)
from agent_relay.race.journal import fold_race
from agent_relay.race.model import Race

BEGAN = datetime(2026, 11, 21, 18, 20, tzinfo=UTC)


def begin(*agents: str, test: str = "make test", applies: bool = False) -> list[RaceBody]:
    """A race of `agents` whose uncommitted files were carried."""
    begun = RaceBegun("R", "/work", "", "c0ffee", "paint the shed", agents, test=test, applies=applies)
    return [begun, RaceCarried(3, ("a note",))]


def place(number: int) -> list[RaceBody]:
    """The runner has its worktree."""
    return [RunnerPlacing(number, f"branch-{number}", f"/trees/{number}"), RunnerPlaced(number, "ba5e")]


def start(number: int) -> list[RaceBody]:
    """The runner has its worktree and works."""
    return [*place(number), RunnerStarting(number), RunnerStarted(number, f"S{number}")]


def settle(
    number: int,
    *,
    how: str = "finished",
    why: str = "",
    files: int = 1,
    lines: int = 10,
    spent_ms: int = 40_000,
    test: int | None = 0,
    test_why: str = "",
) -> list[RaceBody]:
    """The runner from its start to its test's end; without a test where that is `None`."""
    told: list[RaceBody] = [*start(number), RunnerEnded(number, how, spent_ms, why=why)]
    told.append(RunnerMeasured(number, f"e4d{number}", files, lines, 0))
    if test is not None:
        told += [RunnerTesting(number), RunnerTested(number, test, 1500, test_why)]
    return told


def number_events(*bodies: RaceBody) -> list[RaceEvent]:
    """The bodies as lines of a journal, a second apart."""
    return [
        RaceEvent(number, BEGAN + timedelta(seconds=number - 1), body)
        for number, body in enumerate(bodies, 1)
    ]


def tell(*bodies: RaceBody) -> Race:
    """The race those events describe."""
    race = fold_race(number_events(*bodies))
    assert race is not None
    return race
