"""Drive one race: find the next step in its journal, do it, journal the result; safe to stop anywhere."""

import asyncio
import contextlib
import itertools
import logging
import os
import time
from typing import TypeVar

from agent_relay.domain.errors import RelayError
from agent_relay.engine.services import Services
from agent_relay.engine.threads import DedicatedThread, finish
from agent_relay.race._events import (
    RaceApplied,
    RaceApplying,
    RaceBody,
    RaceCarried,
    RaceNotApplied,
    RaceScored,
    RaceStopped,
    RunnerEnded,
    RunnerMeasured,
    RunnerPlaced,
    RunnerPlacing,
    RunnerStarted,
    RunnerStarting,
    RunnerStopped,
    RunnerTested,
    RunnerTesting,
)
from agent_relay.race._workspace import OverlapFinder, RaceWorkspace, RunnerChanges, run_test
from agent_relay.race.journal import RaceJournal
from agent_relay.race.model import (
    Race,
    RaceState,
    RaceStep,
    Runner,
    RunnerOutcome,
    RunnerState,
    RunnerStep,
    build_verdict,
    find_race_step,
    find_runner_step,
)
from agent_relay.race.runner import (
    RunnerActivity,
    RunnerRequest,
    RunnerResult,
    SessionRunners,
    read_runner_usage,
)
from agent_relay.system.disk.file_transaction import UnfinishedChangeError
from agent_relay.system.processes import pause_at

_log = logging.getLogger(__name__)


class SerialJournalWriter:
    """Writes the journal of a race that has begun, a line after the other, none cancelled halfway.

    `race` is its fold.
    """

    def __init__(self, services: Services, journal: RaceJournal) -> None:
        assert journal.race is not None  # noqa: S101 - whoever opened it has looked
        self.race = journal.race
        self._services, self._journal = services, journal
        self._turn = asyncio.Lock()
        # What is done in a race's worktrees may hang for minutes, in as many threads as there are.
        self._thread = DedicatedThread("race-journal")
        self._lines: set[asyncio.Task[None]] = set()

    async def write(self, body: RaceBody) -> None:
        """Write `body` to the journal and apply it to `race`. Raise RelayError, with nothing changed."""
        # A caller cancelled in the middle must not leave the journal a line ahead of what is known here.
        writing = asyncio.create_task(self._write(body), name=body.name)
        self._lines.add(writing)
        writing.add_done_callback(self._lines.discard)
        try:
            await asyncio.shield(writing)
        except asyncio.CancelledError:
            writing.add_done_callback(self._collect)
            raise

    def _collect(self, line: asyncio.Task[None]) -> None:
        """Hear how the line of a cancelled writer ended: that a disk refused it is no mistake of ours."""
        error = None if line.cancelled() else line.exception()
        if isinstance(error, RelayError):
            _log.warning("race-line-refused race=%s line=%s", self.race.id, line.get_name())
        elif error is not None:
            self._services.report(error)

    async def settle(self) -> None:
        """Wait until every line that was begun is written or refused."""
        await asyncio.gather(*self._lines, return_exceptions=True)

    def close(self) -> None:
        """Close the journal; harmless when repeated."""
        self._journal.close()

    async def _write(self, body: RaceBody) -> None:
        async with self._turn:
            pause_at(f"before {body.name}")
            at = self._services.clock.now()
            self.race = await self._thread.run(self._journal.append, body, at=at)
            pause_at(f"after {body.name}")
        self._services.teller.tell(self.race.id)


_EVERY_S = 2.0
_SHARE = 10
"""Reading the worktrees takes at most a tenth of the time, however big the tree is."""
_COUNTED = 5
"""Usage is counted on every fifth look: counting reads the agents' records."""
_E = TypeVar("_E", bound=BaseException)
_ACTIVE = (RunnerState.STARTING, RunnerState.RUNNING)


class RaceDriver:
    """Drives the race of `journal`, which has begun; `writer` journals what happens.

    `activities` and `changes` are the runners' latest, by number. `task` and `test` are the user's texts
    before redaction, if known. `trouble` is what stopped it, as a sentence for the user; empty for nothing.
    """

    def __init__(
        self,
        services: Services,
        journal: RaceJournal,
        runners: SessionRunners,
        environ: dict[str, str],
        *,
        task: str = "",
        test: str = "",
    ) -> None:
        self._services, self._runners, self._environ = services, runners, environ
        self.writer = SerialJournalWriter(services, journal)
        self._task_text = task or self.race.task
        self._test_command = test or self.race.test
        self.workspace = RaceWorkspace(os.path.realpath(journal.folder), self.race.root, self.race.id)
        self.activities: dict[int, RunnerActivity] = {}
        self.changes: dict[int, RunnerChanges] = {}
        self._overlaps = OverlapFinder(self.workspace, self.changes)
        self._testing = asyncio.Lock()
        self._watched: dict[int, tuple[float, float]] = {}
        self._task: asyncio.Task[None] | None = None
        self.trouble = ""

    @property
    def race(self) -> Race:
        """The race now."""
        return self.writer.race

    @property
    def is_active(self) -> bool:
        """True while a task works on the race."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start the task that drives the race to its end."""
        self._task = asyncio.create_task(self._run(), name=f"race {self.race.id}")

    async def stop(self, why: str) -> None:
        """Stop the race and its runners; it can be resumed. Raise RelayError if the disk refuses."""
        await self._cancel()
        active = [runner for runner in self.race.runners if runner.state in _ACTIVE]
        await asyncio.gather(*(self._runners.stop(runner.tree) for runner in active))
        for runner in active:
            await self.writer.write(RunnerStopped(runner.number, self._spent_ms(runner)))
        if self.race.state in (RaceState.PREPARING, RaceState.RUNNING):
            await self.writer.write(RaceStopped(why))

    async def close(self) -> None:
        """Stop driving the race and close its journal; its sessions go on."""
        await self._cancel()
        self.writer.close()

    async def apply(self, number: int) -> int:
        """Apply the runner's changes to the user's tree; return how many files were written, 0 on failure.

        The journal says why it failed. Raises RelayError.
        """
        await self.writer.write(RaceApplying(number))
        return await self._apply()

    async def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self.writer.settle()

    async def _run(self) -> None:
        try:
            await self._go_on()
        except* RelayError as errors:
            await self._give_up(_find_first(errors).sentence)
        except* Exception as errors:  # noqa: BLE001 - the root of the race's task: whoever waits must hear of its end
            self._services.report(_find_first(errors))
            await self._give_up("an internal error stopped it; see: agent-relay daemon logs")
        finally:
            self._services.teller.tell(self.race.id)

    async def _go_on(self) -> None:
        """Do what is left of the race, step by step."""
        while True:
            match find_race_step(self.race):
                case RaceStep.CARRY:
                    await self._carry()
                case RaceStep.RUN:
                    await self._run_all()
                case RaceStep.SCORE:
                    await self._score()
                case RaceStep.APPLY:
                    await self._apply_winner()
                case RaceStep.NOTHING:
                    return

    async def _give_up(self, why: str) -> None:
        """Stop the race and keep `why` for whoever asks, even if it cannot be journalled."""
        _log.warning("race-stopped race=%s", self.race.id)
        self.trouble, self._task = why, None
        with contextlib.suppress(RelayError):
            await self.stop(why)

    async def _carry(self) -> None:
        luggage = await finish(self.workspace.carry)
        await self.writer.write(RaceCarried(luggage.files, luggage.notes))

    async def _score(self) -> None:
        verdict = build_verdict(self.race)
        order = tuple(str(number) for number in verdict.order)
        await self.writer.write(RaceScored(verdict.winner, order, verdict.reasons))

    async def _apply_winner(self) -> None:
        if self.race.state is not RaceState.APPLYING:
            assert self.race.verdict is not None  # noqa: S101 - the step follows from it
            await self.writer.write(RaceApplying(self.race.verdict.winner))
        await self._apply()

    async def _apply(self) -> int:
        runner = self.race.get_runner(self.race.applying)
        try:
            files = await finish(self.workspace.apply, self.race, runner)
        except UnfinishedChangeError:
            # Neither applied nor as it was: the journal goes on saying that it is under way.
            raise
        except RelayError as error:
            await self.writer.write(RaceNotApplied(runner.number, error.sentence))
            return 0
        await self.writer.write(RaceApplied(runner.number, files))
        return files

    async def _run_all(self) -> None:
        """Run every runner to its end. All are placed before the first one starts, so that none is ahead."""
        for runner in self.race.runners:
            if find_runner_step(self.race, runner) is RunnerStep.PLACE:
                await self._place(runner)
        await finish(self.workspace.drop_luggage)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._watch_changes())
            async with asyncio.TaskGroup() as running:
                for runner in self.race.runners:
                    running.create_task(self._drive(runner.number))
            watching.cancel()
        # Runners may be quicker than the watch.
        await self._find_overlaps()

    async def _watch_changes(self) -> None:
        """Find overlaps and count usage repeatedly until cancelled; journal what is new."""
        for number in itertools.count(1):
            began = time.monotonic()
            await self._find_overlaps()
            if number % _COUNTED == 0:
                for runner in self.race.runners:
                    if runner.state is RunnerState.RUNNING:
                        await self._count(runner)
            await asyncio.sleep(max(_EVERY_S, (time.monotonic() - began) * _SHARE))

    async def _find_overlaps(self) -> None:
        """Journal new overlaps. Raise RelayError if that cannot be written."""
        for seen in await self._overlaps.find_new(self.race):
            await self.writer.write(seen)

    async def _place(self, runner: Runner) -> None:
        branch, tree = self.workspace.branch_of(runner), self.workspace.tree_of(runner)
        await self.writer.write(RunnerPlacing(runner.number, branch, tree))
        placing = self.race.get_runner(runner.number)
        base = await finish(self.workspace.make_tree, self.race, placing)
        await self.writer.write(RunnerPlaced(runner.number, base))

    async def _drive(self, number: int) -> None:
        while True:
            runner = self.race.get_runner(number)
            match find_runner_step(self.race, runner):
                case RunnerStep.START:
                    await self._start(runner)
                case RunnerStep.WATCH:
                    await self._watch(runner)
                case RunnerStep.MEASURE:
                    await self._measure(runner)
                case RunnerStep.TEST:
                    await self._test(runner)
                case _:
                    return

    async def _start(self, runner: Runner) -> None:
        await self.writer.write(RunnerStarting(runner.number))
        request = RunnerRequest(
            agent=runner.agent,
            task=self._task_text,
            tree=runner.tree,
            cwd=os.path.join(runner.tree, self.race.below),
            environ=self._environ,
            session=runner.session,
        )
        try:
            session = await self._runners.start(request)
        except RelayError as error:
            await self._end(runner.number, RunnerResult(RunnerOutcome.FAILED, why=error.sentence))
        else:
            await self.writer.write(RunnerStarted(runner.number, session))

    async def _watch(self, runner: Runner) -> None:
        def note(activity: RunnerActivity) -> None:
            self.activities[runner.number] = activity

        limit_s = self.race.max_time_s
        self._watched[runner.number] = (self._services.clock.monotonic(), self._count_going_s(runner))
        left_s = limit_s - self._spent_ms(runner) / 1000 if limit_s else None
        try:
            async with asyncio.timeout(left_s):
                ended = await self._runners.watch(runner.session, runner.tree, note)
        except TimeoutError:
            ended = RunnerResult(RunnerOutcome.TIMED_OUT, why=f"not done within {limit_s} s")
            await self._runners.stop(runner.tree)
        if not self.workspace.has_tree(runner):
            ended = RunnerResult(RunnerOutcome.LOST, why="its worktree was removed")
        if ended.never_began:
            # The daemon was killed while it started an agent: the next one starts it again.
            await self.writer.write(RunnerStopped(runner.number, self._spent_ms(runner)))
        else:
            await self._end(runner.number, ended)

    async def _end(self, number: int, ended: RunnerResult) -> None:
        spent = self._spent_ms(self.race.get_runner(number))
        await self.writer.write(RunnerEnded(number, ended.how.value, spent, ended.status, ended.why))

    async def _count(self, runner: Runner) -> None:
        """Journal what the runner's agents have used, if their records can be read and it has changed."""
        folders, now = self._services.folders, self._services.clock.now()
        try:
            thread = self._services.counting.find(self._environ)
            counted = await thread.run(read_runner_usage, folders, runner, self._environ, now)
        except RelayError:
            return
        if (runner.turns, runner.tokens, runner.cost) != (counted.turns, counted.tokens, counted.cost):
            await self.writer.write(counted)

    async def _measure(self, runner: Runner) -> None:
        if not self.workspace.has_tree(runner):
            await self.writer.write(RunnerMeasured(runner.number, self.race.base, 0, 0, 0))
            return
        await self._count(runner)
        found = await asyncio.to_thread(self.workspace.look, self.race, runner)
        self.changes[runner.number] = found
        await self.writer.write(
            RunnerMeasured(runner.number, found.result, found.files, found.added, found.removed)
        )

    async def _test(self, runner: Runner) -> None:
        """Run the runner's test; one at a time: two at once could disturb and slow down each other."""
        async with self._testing:
            await self.writer.write(RunnerTesting(runner.number))
            status, spent_ms, why = await run_test(
                self.workspace, self.race, runner, self._environ, self._test_command
            )
            await self.writer.write(RunnerTested(runner.number, status, spent_ms, why))

    def _spent_ms(self, runner: Runner) -> int:
        """Return how long the runner has worked, without the time during which the machine slept."""
        if runner.since is None:
            return runner.spent_ms
        watched = self._watched.get(runner.number)
        if watched is None:
            return runner.spent_ms + int(self._count_going_s(runner) * 1000)
        watched_s, before_s = watched
        return runner.spent_ms + int((before_s + self._services.clock.monotonic() - watched_s) * 1000)

    def _count_going_s(self, runner: Runner) -> float:
        """Return how long ago the runner began, by the wall clock: the best known before it is watched."""
        now = self._services.clock.now()
        return max(0.0, (now - runner.since).total_seconds()) if runner.since is not None else 0.0


def _find_first(errors: BaseExceptionGroup[_E]) -> _E:
    """Return the first error of a group, however deeply nested."""
    found = errors.exceptions[0]
    return _find_first(found) if isinstance(found, BaseExceptionGroup) else found
