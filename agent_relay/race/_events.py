"""The events of a race's journal as types, and parsed from the JSON objects of its lines."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, get_args

import msgspec

from agent_relay.domain.events.codec import parse_parts
from agent_relay.domain.events.session import Unknown


class RaceBegun(msgspec.Struct, frozen=True):
    """A race in the working tree `root` began, whose HEAD was `head`; fields as `Race` has them."""

    name: ClassVar[str] = "race.begun"
    race: str
    root: str
    below: str
    head: str
    task: str
    agents: tuple[str, ...]
    test: str = ""
    test_limit_s: int = 0
    max_time_s: int = 0
    applies: bool = False


class RaceCarried(msgspec.Struct, frozen=True):
    """Uncommitted changes of `root` were copied, `files` files; `notes` say what could not be."""

    name: ClassVar[str] = "race.carried"
    files: int
    notes: tuple[str, ...] = ()


class RunnerPlacing(msgspec.Struct, frozen=True):
    """The runner's branch and worktree are about to be made."""

    name: ClassVar[str] = "runner.placing"
    runner: int
    branch: str
    tree: str


class RunnerPlaced(msgspec.Struct, frozen=True):
    """The worktree holds what the user's tree does; `base` is that state as a commit."""

    name: ClassVar[str] = "runner.placed"
    runner: int
    base: str


class RunnerStarting(msgspec.Struct, frozen=True):
    """The runner's session is about to be begun or continued."""

    name: ClassVar[str] = "runner.starting"
    runner: int


class RunnerStarted(msgspec.Struct, frozen=True):
    """The runner's session works."""

    name: ClassVar[str] = "runner.started"
    runner: int
    session: str


class RunnerStopped(msgspec.Struct, frozen=True):
    """The runner was stopped before its end and can be continued; `spent_ms` is all its time so far."""

    name: ClassVar[str] = "runner.stopped"
    runner: int
    spent_ms: int


class RunnerEnded(msgspec.Struct, frozen=True):
    """The runner's work is over, in the way `how` says; `spent_ms` is all its time."""

    name: ClassVar[str] = "runner.ended"
    runner: int
    how: str
    spent_ms: int
    status: int = -1
    why: str = ""


class RunnerCounted(msgspec.Struct, frozen=True):
    """Usage of the runner's agents, by their records; `tokens` -1 and `cost` empty if unknown."""

    name: ClassVar[str] = "runner.counted"
    runner: int
    turns: int
    tokens: int = -1
    cost: str = ""


class RunnerMeasured(msgspec.Struct, frozen=True):
    """The runner's result as a commit, and how much of it differs from the base."""

    name: ClassVar[str] = "runner.measured"
    runner: int
    result: str
    files: int
    added: int
    removed: int


class RunnerTesting(msgspec.Struct, frozen=True):
    """The test is about to run in the runner's worktree."""

    name: ClassVar[str] = "runner.testing"
    runner: int


class RunnerTested(msgspec.Struct, frozen=True):
    """The test ended with `status`, as the shell reports it; `why` if it did not end by itself."""

    name: ClassVar[str] = "runner.tested"
    runner: int
    status: int
    spent_ms: int
    why: str = ""


class OverlapSeen(msgspec.Struct, frozen=True):
    """Two runners changed the same place; fields as `Overlap` has them."""

    name: ClassVar[str] = "overlap.seen"
    first: int
    second: int
    path: str
    what: str


class RaceScored(msgspec.Struct, frozen=True):
    """The race is decided; `order` holds the runners' numbers as text, `reasons` a sentence for each."""

    name: ClassVar[str] = "race.scored"
    winner: int
    order: tuple[str, ...]
    reasons: tuple[str, ...]


class RaceStopped(msgspec.Struct, frozen=True):
    """The race was stopped; it can be resumed."""

    name: ClassVar[str] = "race.stopped"
    why: str = ""


class RaceResumed(msgspec.Struct, frozen=True):
    """The race was resumed."""

    name: ClassVar[str] = "race.resumed"


class RaceApplying(msgspec.Struct, frozen=True):
    """The runner's changes are about to be written to the user's working tree."""

    name: ClassVar[str] = "race.applying"
    runner: int


class RaceApplied(msgspec.Struct, frozen=True):
    """The user's working tree has the runner's changes, in `files` files."""

    name: ClassVar[str] = "race.applied"
    runner: int
    files: int


class RaceNotApplied(msgspec.Struct, frozen=True):
    """The user's working tree is as it was, for this reason."""

    name: ClassVar[str] = "race.not-applied"
    runner: int
    why: str


class RaceCleaning(msgspec.Struct, frozen=True):
    """The race is about to be removed with all it made."""

    name: ClassVar[str] = "race.cleaning"


RaceBody = (
    RaceBegun
    | RaceCarried
    | RunnerPlacing
    | RunnerPlaced
    | RunnerStarting
    | RunnerStarted
    | RunnerStopped
    | RunnerEnded
    | RunnerCounted
    | RunnerMeasured
    | RunnerTesting
    | RunnerTested
    | OverlapSeen
    | RaceScored
    | RaceStopped
    | RaceResumed
    | RaceApplying
    | RaceApplied
    | RaceNotApplied
    | RaceCleaning
    | Unknown
)
_KINDS: dict[str, Callable[..., RaceBody]] = {
    kind.name: kind for kind in get_args(RaceBody) if kind is not Unknown
}


class RaceEvent(msgspec.Struct, frozen=True):
    """One line of a race's journal. `number` counts from 1."""

    number: int
    at: datetime
    body: RaceBody


def parse_race_event(line: Mapping[str, object]) -> RaceEvent:
    """Parse the event of one line; an unknown one, of a newer version, becomes `Unknown`.

    Raises UntrustedDataError if the line has a newer format, is no event, or a known event lacks a field.
    """
    return RaceEvent(*parse_parts(line, _KINDS))
