"""Define a race as a value: several agents at one task, the next step of each, the verdict by one test."""

from datetime import datetime
from enum import Enum, StrEnum, auto
from itertools import pairwise

import msgspec

from agent_relay.domain.text.plain import render_count


class RaceState(StrEnum):
    """The state of a race."""

    PREPARING = "preparing"
    RUNNING = "running"
    STOPPED = "stopped"
    SCORED = "scored"
    APPLYING = "applying"
    APPLIED = "applied"
    CLEANING = "cleaning"


class RunnerState(StrEnum):
    """Progress of one runner, by the last line of the journal about it."""

    WAITING = "waiting"
    PLACING = "placing"
    PLACED = "placed"
    STARTING = "starting"
    RUNNING = "running"
    STOPPED = "stopped"
    ENDED = "ended"
    MEASURED = "measured"
    TESTING = "testing"
    TESTED = "tested"


class RunnerOutcome(StrEnum):
    """End of a runner, by itself or by its time limit."""

    FINISHED = "finished"
    FAILED = "failed"
    LIMITED = "limited"
    TIMED_OUT = "timed-out"
    LOST = "lost"


class Runner(msgspec.Struct, frozen=True):
    """One agent of a race; `number` counts from 1 in the order given.

    `branch` and `tree` (its folder) are known from when they are about to be made. `base` and `result` are
    commits in the race's own object store: what the runner found, and what it left. `since` is when its
    agent was last started, `spent_ms` the time before that. While unknown, `status`, `test_status` and
    `tokens` are -1, `turns` 0 and `cost` empty.
    """

    number: int
    agent: str
    state: RunnerState = RunnerState.WAITING
    branch: str = ""
    tree: str = ""
    base: str = ""
    session: str = ""
    since: datetime | None = None
    spent_ms: int = 0
    how: str = ""
    status: int = -1
    why: str = ""
    result: str = ""
    files: int = 0
    added: int = 0
    removed: int = 0
    test_status: int = -1
    test_ms: int = 0
    test_why: str = ""
    turns: int = 0
    tokens: int = -1
    cost: str = ""

    @property
    def name(self) -> str:
        """Its name for people: its number and its agent."""
        return f"{self.number}-{self.agent}"

    @property
    def lines(self) -> int:
        """The size of its diff: lines added and removed."""
        return self.added + self.removed


class Overlap(msgspec.Struct, frozen=True):
    """Two runners (by number, the smaller first) changed the same place; `what` says where and how."""

    first: int
    second: int
    path: str
    what: str


class Verdict(msgspec.Struct, frozen=True):
    """The winner (0 for none), all runners from best to worst, and a sentence of reasons for each."""

    winner: int
    order: tuple[int, ...]
    reasons: tuple[str, ...]


class Race(msgspec.Struct, frozen=True):
    """The fold of a race's journal.

    `root` is the user's working tree, `below` the folder in it the race was asked for in, relative and empty
    for the root; `head` the commit of its HEAD. `test` is a shell's command line. `applying` is the number
    of the runner whose changes are being or were last applied, `applied` the same once they were, `failure`
    why they could not be.
    """

    id: str
    root: str
    below: str
    head: str
    task: str
    began_at: datetime
    updated_at: datetime
    runners: tuple[Runner, ...]
    test: str = ""
    test_limit_s: int = 0
    max_time_s: int = 0
    applies: bool = False
    state: RaceState = RaceState.PREPARING
    number: int = 0
    carried: int = -1
    notes: tuple[str, ...] = ()
    overlaps: tuple[Overlap, ...] = ()
    verdict: Verdict | None = None
    applying: int = 0
    applied: int = 0
    applied_files: int = 0
    failure: str = ""
    why: str = ""

    @property
    def base(self) -> str:
        """The commit all runners began from; empty before the first was placed."""
        return next((runner.base for runner in self.runners if runner.base), "")

    def get_runner(self, number: int) -> Runner:
        """Return the runner of that number. Raise IndexError if there is none."""
        if not 1 <= number <= len(self.runners):
            raise IndexError(number)
        return self.runners[number - 1]

    def is_settled(self, runner: Runner) -> bool:
        """Tell whether only scoring is left for the runner."""
        last = RunnerState.TESTED if self.test else RunnerState.MEASURED
        return runner.state is last


class RunnerStep(Enum):
    """The next thing to do for one runner."""

    PLACE = auto()
    START = auto()
    WATCH = auto()
    MEASURE = auto()
    TEST = auto()
    NOTHING = auto()


class RaceStep(Enum):
    """The next thing to do for the race as a whole."""

    CARRY = auto()
    RUN = auto()
    SCORE = auto()
    APPLY = auto()
    NOTHING = auto()


def find_runner_step(race: Race, runner: Runner) -> RunnerStep:
    """Return the next step for `runner`; a step under way when the daemon died is begun again."""
    match runner.state:
        case RunnerState.WAITING | RunnerState.PLACING:
            return RunnerStep.PLACE
        case RunnerState.PLACED | RunnerState.STARTING | RunnerState.STOPPED:
            return RunnerStep.START
        case RunnerState.RUNNING:
            return RunnerStep.WATCH
        case RunnerState.ENDED:
            return RunnerStep.MEASURE
        case RunnerState.MEASURED | RunnerState.TESTING if race.test:
            return RunnerStep.TEST
        case _:
            return RunnerStep.NOTHING


def find_race_step(race: Race) -> RaceStep:
    """Return the next step for the race."""
    match race.state:
        case RaceState.PREPARING:
            return RaceStep.CARRY
        case RaceState.RUNNING:
            settled = all(race.is_settled(runner) for runner in race.runners)
            return RaceStep.SCORE if settled else RaceStep.RUN
        case RaceState.SCORED:
            wanted = race.applies and race.verdict is not None and race.verdict.winner > 0
            return RaceStep.APPLY if wanted and not race.failure else RaceStep.NOTHING
        case RaceState.APPLYING:
            return RaceStep.APPLY
        case _:
            return RaceStep.NOTHING


_PASSED, _FAILED = 0, 1


def build_verdict(race: Race) -> Verdict:
    """Rank the race's runners from best to worst, with a sentence of reasons for each.

    A runner that changed nothing comes last: the smallest diff must not win by ignoring the task. There is
    no winner if the best changed nothing or failed. Equal runners keep the order they were named in.
    """
    ranked = sorted(race.runners, key=lambda runner: _rank(race, runner))
    best = ranked[0]
    winner = best.number if best.files and _grade(race, best) == _PASSED else 0
    reasons = [_explain(race, runner) for runner in ranked]
    for place, (one, other) in enumerate(pairwise(ranked)):
        if one.files:
            reasons[place] += f"; {_compare(race, one, other)}"
    return Verdict(winner, tuple(runner.number for runner in ranked), tuple(reasons))


def _rank(race: Race, runner: Runner) -> tuple[bool, int, int, int, int]:
    return (not runner.files, _grade(race, runner), runner.lines, runner.spent_ms, runner.number)


def _grade(race: Race, runner: Runner) -> int:
    """Return 0 for passed or 1: by the test if there is one, else by whether the agent finished."""
    if race.test:
        return _PASSED if runner.test_status == 0 else _FAILED
    return _PASSED if runner.how == RunnerOutcome.FINISHED else _FAILED


def _explain(race: Race, runner: Runner) -> str:
    if not runner.files:
        return f"changed nothing ({_render_end(runner)})"
    parts = [_render_test(runner)] if race.test else [_render_end(runner)]
    if race.test and runner.how != RunnerOutcome.FINISHED:
        parts.append(_render_end(runner))
    parts.append(f"{render_count(runner.lines, 'line')} in {render_count(runner.files, 'file')}")
    parts.append(f"{runner.spent_ms / 1000:.1f} s")
    return ", ".join(parts)


def _render_test(runner: Runner) -> str:
    if runner.test_status == 0:
        return "test passed"
    return f"test {runner.test_why}" if runner.test_why else f"test failed (exit {runner.test_status})"


def _render_end(runner: Runner) -> str:
    how = runner.how.replace("-", " ")
    return f"{how}: {runner.why}" if runner.why else how


def _compare(race: Race, one: Runner, other: Runner) -> str:
    """Say why `one` ranks before `other`: the first thing in which they differ."""
    if not other.files:
        return f"{other.name} changed nothing"
    if _grade(race, one) != _grade(race, other):
        return f"{other.name} {'failed the test' if race.test else 'did not finish'}"
    if one.lines != other.lines:
        return f"{render_count(other.lines - one.lines, 'line')} less than {other.name}"
    if one.spent_ms != other.spent_ms:
        return f"as many lines as {other.name}, {(other.spent_ms - one.spent_ms) / 1000:.1f} s faster"
    return f"a tie with {other.name}, broken by the order given"


def build_race_view(race: Race, now: datetime) -> dict[str, object]:
    """Build the view of the race with all its runners; `None` for what is not known (yet)."""
    verdict = race.verdict
    return {
        "race": race.id,
        "state": race.state.value,
        "root": race.root,
        "task": race.task,
        "test": race.test,
        "max_time_s": race.max_time_s,
        "head": race.head,
        "began_at": race.began_at.isoformat(),
        "updated_at": race.updated_at.isoformat(),
        "notes": list(race.notes),
        "why": race.why,
        "resumable": race.state is RaceState.STOPPED or find_race_step(race) is not RaceStep.NOTHING,
        "runners": [_build_runner(race, runner, now) for runner in race.runners],
        "overlaps": [
            {
                "first": race.get_runner(overlap.first).name,
                "second": race.get_runner(overlap.second).name,
                "path": overlap.path,
                "what": overlap.what,
            }
            for overlap in race.overlaps
        ],
        "winner": race.get_runner(verdict.winner).name if verdict and verdict.winner else "",
        "ranking": [race.get_runner(number).name for number in verdict.order] if verdict else [],
        "applied": race.get_runner(race.applied).name if race.applied else "",
        "applied_files": race.applied_files,
        "failure": race.failure,
    }


def _build_runner(race: Race, runner: Runner, now: datetime) -> dict[str, object]:
    measured = bool(runner.result)
    verdict = race.verdict
    place = verdict.order.index(runner.number) if verdict else None
    return {
        "runner": runner.name,
        "number": runner.number,
        "agent": runner.agent,
        "state": runner.state.value,
        "how": runner.how,
        "why": runner.why,
        "session": runner.session,
        "branch": runner.branch,
        "tree": runner.tree,
        "spent_s": _count_seconds(runner, now),
        "files": runner.files if measured else None,
        "added": runner.added if measured else None,
        "removed": runner.removed if measured else None,
        "turns": runner.turns or None,
        "tokens": runner.tokens if runner.tokens >= 0 else None,
        "cost": runner.cost or None,
        "test": _name_test_state(race, runner),
        "test_status": runner.test_status if runner.state is RunnerState.TESTED else None,
        "test_s": runner.test_ms / 1000 if runner.state is RunnerState.TESTED else None,
        "place": place + 1 if place is not None else None,
        "reason": verdict.reasons[place] if verdict and place is not None else "",
    }


def _count_seconds(runner: Runner, now: datetime) -> float:
    going = (now - runner.since).total_seconds() if runner.since is not None else 0.0
    return round(runner.spent_ms / 1000 + max(going, 0.0), 1)


def _name_test_state(race: Race, runner: Runner) -> str:
    if not race.test:
        return "none"
    if runner.state is RunnerState.TESTED:
        return "passed" if runner.test_status == 0 else "failed"
    return "running" if runner.state is RunnerState.TESTING else "waiting"
