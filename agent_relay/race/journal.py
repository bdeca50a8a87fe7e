"""Create, find, read and fold the journals of races, by the tables of allowed transitions."""

import os
from collections.abc import Iterable, Mapping
from datetime import datetime
from types import MappingProxyType

from agent_relay.domain.errors import RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.events.session import Unknown
from agent_relay.domain.names import is_ulid
from agent_relay.domain.values import replace
from agent_relay.race._events import (
    OverlapSeen,
    RaceApplied,
    RaceApplying,
    RaceBegun,
    RaceBody,
    RaceCarried,
    RaceCleaning,
    RaceEvent,
    RaceNotApplied,
    RaceResumed,
    RaceScored,
    RaceStopped,
    RunnerCounted,
    RunnerEnded,
    RunnerMeasured,
    RunnerPlaced,
    RunnerPlacing,
    RunnerStarted,
    RunnerStarting,
    RunnerStopped,
    RunnerTested,
    RunnerTesting,
    parse_race_event,
)
from agent_relay.race.model import Overlap, Race, RaceState, Runner, RunnerState, Verdict
from agent_relay.store.journal import Journal, read_journal
from agent_relay.system.disk.files import cannot_write, sync_folder
from agent_relay.system.disk.folders import Folders, ensure_private

R, S = RaceState, RunnerState
_UNDER_WAY = (R.PREPARING, R.RUNNING)
_OVER = (R.SCORED, R.APPLIED)

RACE_TRANSITIONS: Mapping[type[RaceBody], Mapping[RaceState, RaceState]] = MappingProxyType(
    {
        RaceCarried: {R.PREPARING: R.RUNNING},
        OverlapSeen: {R.RUNNING: R.RUNNING},
        RaceScored: {R.RUNNING: R.SCORED},
        RaceStopped: dict.fromkeys(_UNDER_WAY, R.STOPPED),
        RaceResumed: {R.STOPPED: R.RUNNING, **dict.fromkeys(_UNDER_WAY, R.RUNNING)},
        RaceApplying: dict.fromkeys((*_OVER, R.APPLYING, R.STOPPED), R.APPLYING),
        RaceApplied: {R.APPLYING: R.APPLIED},
        RaceNotApplied: {R.APPLYING: R.SCORED},
        RaceCleaning: dict.fromkeys(R, R.CLEANING),
    }
)
"""The states of the race each event is allowed in, each with the state that follows."""

RUNNER_TRANSITIONS: Mapping[type[RaceBody], Mapping[RunnerState, RunnerState]] = MappingProxyType(
    {
        RunnerPlacing: dict.fromkeys((S.WAITING, S.PLACING), S.PLACING),
        RunnerPlaced: {S.PLACING: S.PLACED},
        RunnerStarting: dict.fromkeys((S.PLACED, S.STARTING, S.STOPPED), S.STARTING),
        RunnerStarted: {S.STARTING: S.RUNNING},
        RunnerStopped: dict.fromkeys((S.STARTING, S.RUNNING), S.STOPPED),
        RunnerEnded: dict.fromkeys((S.STARTING, S.RUNNING), S.ENDED),
        RunnerCounted: {state: state for state in S},
        RunnerMeasured: {S.ENDED: S.MEASURED},
        RunnerTesting: dict.fromkeys((S.MEASURED, S.TESTING), S.TESTING),
        RunnerTested: {S.TESTING: S.TESTED},
    }
)
"""The states of its runner each event is allowed in, each with the state that follows."""


def fold_race(events: Iterable[RaceEvent]) -> Race | None:
    """Fold events into the race; `None` for an empty journal. Raise what `fold_race_event` raises."""
    race: Race | None = None
    for event in events:
        race = fold_race_event(race, event)
    return race


def fold_race_event(race: Race | None, event: RaceEvent) -> Race:
    """Apply `event` and return the race after it.

    Raises UntrustedDataError for an event that cannot follow: the journal was altered, or relay has a bug.
    """
    body = event.body
    if race is None:
        if not isinstance(body, RaceBegun):
            raise UntrustedDataError(f"a race's journal begins with {body.name}")
        return _begin(body, event)
    if isinstance(body, RaceBegun):
        raise UntrustedDataError("a race's journal begins a second time")
    race = _move(replace(race, number=event.number, updated_at=event.at), body)
    return _change_race(race, body, event)


def _change_race(race: Race, body: RaceBody, event: RaceEvent) -> Race:  # noqa: PLR0911 - one arm an event
    match body:
        case RaceCarried():
            return replace(race, carried=body.files, notes=body.notes)
        case OverlapSeen():
            found = Overlap(body.first, body.second, body.path, body.what)
            return replace(race, overlaps=(*race.overlaps, found))
        case RaceScored():
            order = tuple(int(number) for number in body.order)
            return replace(race, verdict=Verdict(body.winner, order, body.reasons), why="")
        case RaceStopped():
            return replace(race, why=body.why)
        case RaceResumed():
            return replace(race, why="", state=race.state if race.carried >= 0 else R.PREPARING)
        case RaceApplied():
            # Applied again there may be nothing left to write: what was written counts on.
            earlier = race.applied_files if race.applied == body.runner else 0
            return replace(race, applied=body.runner, applied_files=body.files or earlier, failure="")
        case RaceNotApplied():
            return replace(race, failure=body.why)
        case RaceApplying():
            return replace(race, applying=body.runner)
        case RaceCleaning() | RaceBegun() | Unknown():
            return race
        case _:
            return _fold_runner(race, body, event)


def _begin(body: RaceBegun, event: RaceEvent) -> Race:
    return Race(
        id=body.race,
        root=body.root,
        below=body.below,
        head=body.head,
        task=body.task,
        began_at=event.at,
        updated_at=event.at,
        runners=tuple(Runner(number, agent) for number, agent in enumerate(body.agents, 1)),
        test=body.test,
        test_limit_s=body.test_limit_s,
        max_time_s=body.max_time_s,
        applies=body.applies,
        number=event.number,
    )


def _move(race: Race, body: RaceBody) -> Race:
    moves = RACE_TRANSITIONS.get(type(body))
    if moves is None:
        return race
    if race.state not in moves:
        raise UntrustedDataError(f"{body.name} cannot follow while a race is {race.state.value}")
    return replace(race, state=moves[race.state])


_RunnerBody = (
    RunnerPlacing
    | RunnerPlaced
    | RunnerStarting
    | RunnerStarted
    | RunnerStopped
    | RunnerEnded
    | RunnerCounted
    | RunnerMeasured
    | RunnerTesting
    | RunnerTested
)


def _fold_runner(race: Race, body: _RunnerBody, event: RaceEvent) -> Race:
    try:
        runner = race.get_runner(body.runner)
    except IndexError:
        raise UntrustedDataError(f"{body.name} is about a runner there is not") from None
    moves = RUNNER_TRANSITIONS[type(body)]
    if runner.state not in moves:
        raise UntrustedDataError(f"{body.name} cannot follow while a runner is {runner.state.value}")
    runner = _change(replace(runner, state=moves[runner.state]), body, event)
    others = (runner if one.number == runner.number else one for one in race.runners)
    return replace(race, runners=tuple(others))


def _change(runner: Runner, body: _RunnerBody, event: RaceEvent) -> Runner:  # noqa: PLR0911 - one arm an event
    match body:
        case RunnerPlacing():
            return replace(runner, branch=body.branch, tree=body.tree, base="")
        case RunnerPlaced():
            return replace(runner, base=body.base)
        case RunnerStarted():
            return replace(runner, session=body.session)
        case RunnerStopped():
            return replace(runner, spent_ms=body.spent_ms, since=None)
        case RunnerEnded():
            ended = replace(runner, how=body.how, status=body.status, why=body.why)
            return replace(ended, spent_ms=body.spent_ms, since=None)
        case RunnerCounted():
            return replace(runner, turns=body.turns, tokens=body.tokens, cost=body.cost)
        case RunnerMeasured():
            measured = replace(runner, result=body.result, files=body.files)
            return replace(measured, added=body.added, removed=body.removed)
        case RunnerTested():
            return replace(runner, test_status=body.status, test_ms=body.spent_ms, test_why=body.why)
        case RunnerStarting():
            return replace(runner, since=event.at)
        case _:
            return runner


JOURNAL = "journal.jsonl"
_SPACED = (", ", ": ")


class RaceJournal:
    """The journal of the race in `folder`, owned by this process; `race` is its fold.

    Raises UntrustedDataError if a line cannot be trusted, StaleOwnerError if another process owns it,
    RelayError if it cannot be opened.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._journal = Journal(os.path.join(folder, JOURNAL), parse_race_event, separators=_SPACED)
        try:
            self.race: Race | None = fold_race(self._journal.events)
        except RelayError:
            self._journal.close()
            raise

    def append(self, body: RaceBody, *, at: datetime) -> Race:
        """Append `body`, durably, and return the race after it. Raise RelayError, with nothing changed."""
        event = RaceEvent(len(self._journal.events) + 1, at, body)
        # Folded before it is written: an impossible event must be loud here, not on every later start.
        folded = fold_race_event(self.race, event)
        self._journal.append(event, durable=True)
        self.race = folded
        return folded

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()


def create_race(folders: Folders, begun: RaceBegun, *, at: datetime) -> RaceJournal:
    """Create a race's folder and journal with its first line. Raise RelayError on failure."""
    ensure_private(folders.state)
    races = ensure_private(folders.races)
    folder = ensure_private(os.path.join(races, begun.race))
    try:
        sync_folder(races)
    except OSError as error:
        raise cannot_write(folder, error) from error
    journal = RaceJournal(folder)
    try:
        journal.append(begun, at=at)
    except RelayError:
        journal.close()
        raise
    return journal


def read_race(folder: str) -> Race | None:
    """Read the race in `folder` without a lock; `None` if there is none or it never began.

    Raises UntrustedDataError if its journal cannot be trusted.
    """
    return fold_race(read_journal(os.path.join(folder, JOURNAL), parse_race_event))


def list_races(folders: Folders) -> list[str]:
    """Return the ids of all races, newest first."""
    try:
        names = os.listdir(folders.races)
    except OSError:
        return []
    return sorted((name for name in names if is_ulid(name)), reverse=True)


def find_race(folders: Folders, text: str, *, root: str) -> tuple[str, Race]:
    """Return folder and race whose id begins or ends with `text`; for an empty one the newest of `root`.

    Raise WrongUseError for none or several.
    """
    found: list[tuple[str, Race]] = []
    wanted = text.upper()
    for name in list_races(folders):
        if wanted and not (name.startswith(wanted) or name.endswith(wanted)):
            continue
        folder = os.path.join(folders.races, name)
        race = read_race(folder)
        if race is not None and (wanted or race.root == root):
            found.append((folder, race))
    if not found:
        what = f"no race has the id {text[:40]!r}" if text else f"there is no race in {root}"
        raise WrongUseError(what, hint="See: agent-relay race list")
    if wanted and len(found) > 1:
        raise WrongUseError(
            f"{len(found)} races have an id that begins or ends with {text[:40]!r}",
            hint="See: agent-relay race list",
        )
    return found[0]
