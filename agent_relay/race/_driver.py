"""Drive one race: find the next step in its journal, do it, journal the result; safe to stop anywhere.

Several tasks write to the journal at once: `SerialJournalWriter` writes one line after the other, and no
line is cancelled halfway.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable

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
)
from agent_relay.race._overlaps import find_new_overlaps, watch_overlaps
from agent_relay.race._score import build_verdict
from agent_relay.race._steps import RaceStep, RunnerStep, find_race_step, find_runner_step
from agent_relay.race._workspace import RaceWorkspace, RunnerChanges, run_test
from agent_relay.race.journal import RaceJournal
from agent_relay.race.model import Race, RaceState, Runner, RunnerOutcome, RunnerState
from agent_relay.race.runner import RunnerActivity, RunnerRequest, RunnerResult, Runners, read_runner_usage
from agent_relay.system.disk.file_transaction import UnfinishedChangeError
from agent_relay.system.processes import pause_at

_log = logging.getLogger(__name__)


class SerialJournalWriter:
    """Writes the journal of a race that has begun; `race` is its fold."""

    def __init__(self, services: Services, journal: RaceJournal) -> None:
        assert journal.race is not None  # noqa: S101 - who opens it has looked
        self.race = journal.race
        self.folder = journal.folder
        self._services, self._journal = services, journal
        self._turn = asyncio.Lock()
        # What is done in a race's worktrees may hang for minutes, in as many threads as there are.
        self._thread = DedicatedThread("race-journal")
        self._lines: set[asyncio.Task[None]] = set()

    async def write(self, body: RaceBody) -> None:
        """Write `body` to the journal and apply it to `race`. Raise RelayError, with nothing changed."""
        # Who is cancelled in the middle must not leave the journal a line ahead of what is known here.
        writing = asyncio.create_task(self._write(body), name=body.name)
        self._lines.add(writing)
        writing.add_done_callback(self._lines.discard)
        await asyncio.shield(writing)

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


_ACTIVE = (RunnerState.STARTING, RunnerState.RUNNING)


class RaceDriver:
    """Drives the race of `journal`, which has begun; `seen` and `looks` are the runners' latest activity.

    `task` and `test` are the user's texts before redaction, if known. `trouble` is what stopped it, as a
    sentence for the user; empty for nothing.
    """

    def __init__(
        self,
        services: Services,
        journal: RaceJournal,
        runners: Runners,
        environ: dict[str, str],
        *,
        task: str = "",
        test: str = "",
    ) -> None:
        self._services, self._runners, self._environ = services, runners, environ
        self._scribe = SerialJournalWriter(services, journal)
        self._words = task or self.race.task
        self._test_command = test or self.race.test
        self.place = RaceWorkspace(os.path.realpath(journal.folder), self.race.root, self.race.id)
        self.seen: dict[int, RunnerActivity] = {}
        self.looks: dict[int, RunnerChanges] = {}
        self._testing = asyncio.Lock()
        self._watched: dict[int, tuple[float, float]] = {}
        self._task: asyncio.Task[None] | None = None
        self.trouble = ""

    @property
    def race(self) -> Race:
        """The race now."""
        return self._scribe.race

    @property
    def is_active(self) -> bool:
        """Whether a task works on the race."""
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
            await self.write(RunnerStopped(runner.number, self._spent_ms(runner)))
        if self.race.state in (RaceState.PREPARING, RaceState.RUNNING):
            await self.write(RaceStopped(why))

    async def close(self) -> None:
        """Stop driving the race and close its journal; its sessions go on."""
        await self._cancel()
        self._scribe.close()

    async def wait(self) -> None:
        """Wait until the driving task has ended."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def apply(self, number: int) -> int:
        """Apply the runner's changes to the user's tree; return how many files were written, 0 on failure.

        The journal says why it failed. Raises RelayError.
        """
        await self.write(RaceApplying(number))
        return await self._apply()

    async def write(self, body: RaceBody) -> None:
        """Write `body` to the journal and apply it to `race`. Raise RelayError, with nothing changed."""
        await self._scribe.write(body)

    async def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._scribe.settle()

    async def _run(self) -> None:
        try:
            while (step := find_race_step(self.race)) is not RaceStep.NOTHING:
                await self._steps()[step]()
        except* RelayError as errors:
            await self._give_up(_first(errors).sentence)
        except* Exception as errors:  # noqa: BLE001 - the root of the race's task: whoever waits must hear of its end
            self._services.report(_first(errors))
            await self._give_up("a mistake of ours stopped it; see: agent-relay daemon logs")
        finally:
            self._services.teller.tell(self.race.id)

    def _steps(self) -> dict[RaceStep, Callable[[], Awaitable[None]]]:
        return {
            RaceStep.CARRY: self._carry,
            RaceStep.RUN: self._run_all,
            RaceStep.SCORE: self._score,
            RaceStep.APPLY: self._apply_winner,
        }

    async def _give_up(self, why: str) -> None:
        """Stop the race and keep `why` for whoever asks, even if it cannot be journalled."""
        _log.warning("race-stopped race=%s", self.race.id)
        self.trouble, self._task = why, None
        with contextlib.suppress(RelayError):
            await self.stop(why)

    async def _carry(self) -> None:
        luggage = await finish(self.place.carry)
        await self.write(RaceCarried(luggage.files, luggage.notes))

    async def _score(self) -> None:
        verdict = build_verdict(self.race)
        order = tuple(str(number) for number in verdict.order)
        await self.write(RaceScored(verdict.winner, order, verdict.reasons))

    async def _apply_winner(self) -> None:
        if self.race.state is not RaceState.APPLYING:
            assert self.race.verdict is not None  # noqa: S101 - the step follows from it
            await self.write(RaceApplying(self.race.verdict.winner))
        await self._apply()

    async def _apply(self) -> int:
        runner = self.race.get_runner(self.race.applying)
        try:
            files = await finish(self.place.apply, self.race, runner)
        except UnfinishedChangeError:
            # Neither applied nor as it was: the journal goes on saying that it is under way.
            raise
        except RelayError as error:
            await self.write(RaceNotApplied(runner.number, error.sentence))
            return 0
        await self.write(RaceApplied(runner.number, files))
        return files

    async def _run_all(self) -> None:
        """Run every runner to its end. All are placed before the first one starts, so that none is ahead."""
        for runner in self.race.runners:
            if find_runner_step(self.race, runner) is RunnerStep.PLACE:
                await self._place(runner)
        await finish(self.place.drop_luggage)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(watch_overlaps(self))
            async with asyncio.TaskGroup() as running:
                for runner in self.race.runners:
                    running.create_task(self._drive(runner.number))
            watching.cancel()
        # Runners may be quicker than the watch.
        await find_new_overlaps(self, {})

    async def _place(self, runner: Runner) -> None:
        branch, tree = self.place.branch_of(runner), self.place.tree_of(runner)
        await self.write(RunnerPlacing(runner.number, branch, tree))
        placing = self.race.get_runner(runner.number)
        base = await finish(self.place.make_tree, self.race, placing)
        await self.write(RunnerPlaced(runner.number, base))

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
        await self.write(RunnerStarting(runner.number))
        wish = RunnerRequest(
            agent=runner.agent,
            task=self._words,
            tree=runner.tree,
            cwd=os.path.join(runner.tree, self.race.below),
            environ=self._environ,
            session=runner.session,
        )
        try:
            session = await self._runners.start(wish)
        except RelayError as error:
            await self._end(runner.number, RunnerResult(RunnerOutcome.FAILED, why=error.sentence))
        else:
            await self.write(RunnerStarted(runner.number, session))

    async def _watch(self, runner: Runner) -> None:
        def tell(seen: RunnerActivity) -> None:
            self.seen[runner.number] = seen

        limit_s = self.race.max_time_s
        self._watched[runner.number] = (self._services.clock.monotonic(), self._count_going_s(runner))
        left_s = limit_s - self._spent_ms(runner) / 1000 if limit_s else None
        try:
            async with asyncio.timeout(left_s):
                ended = await self._runners.watch(runner.session, runner.tree, tell)
        except TimeoutError:
            ended = RunnerResult(RunnerOutcome.TIMED_OUT, why=f"not done within {limit_s} s")
            await self._runners.stop(runner.tree)
        if not self.place.has_tree(runner):
            ended = RunnerResult(RunnerOutcome.LOST, why="its worktree was removed")
        if ended.never_began:
            # The daemon was killed while it started an agent: the next one starts it again.
            await self.write(RunnerStopped(runner.number, self._spent_ms(runner)))
        else:
            await self._end(runner.number, ended)

    async def _end(self, number: int, ended: RunnerResult) -> None:
        spent = self._spent_ms(self.race.get_runner(number))
        await self.write(RunnerEnded(number, ended.how.value, spent, ended.status, ended.why))

    async def count(self, runner: Runner) -> None:
        """Journal what the runner's agents have used, if their records can be read and it has changed."""
        folders, now = self._services.folders, self._services.clock.now()
        try:
            thread = self._services.counting.find(self._environ)
            used = await thread.run(read_runner_usage, folders, runner.tree, self._environ, now)
        except RelayError:
            return
        tokens = -1 if used.tokens is None else used.tokens
        counted = RunnerCounted(runner.number, used.turns, tokens, used.cost or "")
        if (runner.turns, runner.tokens, runner.cost) != (counted.turns, counted.tokens, counted.cost):
            await self.write(counted)

    async def _measure(self, runner: Runner) -> None:
        if not self.place.has_tree(runner):
            await self.write(RunnerMeasured(runner.number, self.race.base, 0, 0, 0))
            return
        await self.count(runner)
        look = await asyncio.to_thread(self.place.look, self.race, runner)
        self.looks[runner.number] = look
        await self.write(RunnerMeasured(runner.number, look.result, look.files, look.added, look.removed))

    async def _test(self, runner: Runner) -> None:
        """Run the runner's test; one at a time: two at once could disturb and slow down each other."""
        async with self._testing:
            await self.write(RunnerTesting(runner.number))
            status, spent_ms, why = await run_test(
                self.place, self.race, runner, self._environ, self._test_command
            )
            await self.write(RunnerTested(runner.number, status, spent_ms, why))

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


def _first(errors: BaseExceptionGroup[BaseException]) -> RelayError:
    """Return the first error of a group, however deeply nested."""
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found if isinstance(found, RelayError) else _wrap(found)


def _wrap(error: BaseException) -> RelayError:
    wrapped = RelayError("a race stopped")
    wrapped.__cause__ = error
    return wrapped
