"""Keep one user's races in the daemon, and serve their operations: begin, resume, stop, apply, clean."""

import asyncio
import logging
import os
from collections.abc import Mapping

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import BY_HAND, is_ulid
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.operations import Handler, Peer
from agent_relay.engine.publishing.limited_work import redact_in_thread
from agent_relay.engine.services import Services
from agent_relay.engine.threads import Failed, attempt
from agent_relay.race._driver import RaceDriver
from agent_relay.race._events import RaceBegun, RaceCleaning, RaceResumed
from agent_relay.race.journal import RaceJournal, create_race, list_races, read_race
from agent_relay.race.model import Race, RaceState, RaceStep, build_race_view, find_race_step
from agent_relay.race.runner import SessionRunners
from agent_relay.system.config_file import gather_secrets
from agent_relay.system.disk.removal import remove_tree
from agent_relay.system.git.snapshot import check_version
from agent_relay.system.git.tree_state import find_root
from agent_relay.system.git.worktree import check_repository

_log = logging.getLogger(__name__)
_FEWEST, _MOST = 2, 9
_TEST_LIMIT_S = 600
_UNDECIDED = (RaceState.PREPARING, RaceState.RUNNING, RaceState.STOPPED)
_UNDER_WAY = "Stop it first: agent-relay race stop"


class RaceRegistry:
    """The races of one user. One instance per daemon; use it from the event loop only."""

    def __init__(self, services: Services, runners: SessionRunners) -> None:
        self._services, self._runners = services, runners
        self._drivers: dict[str, RaceDriver] = {}
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Finish removals that a crash interrupted. Interrupted races wait until they are resumed."""
        for race_id in await asyncio.to_thread(list_races, self._services.folders):
            done = await attempt(self._finish_removal(race_id))
            if isinstance(done, Failed):
                _log.warning("race-left race=%s why=%s", race_id, type(done.error).__name__)
                if not isinstance(done.error, RelayError):
                    # One race's files must not keep a daemon from serving everybody else.
                    self._services.report(done.error)

    async def _finish_removal(self, race_id: str) -> None:
        folder = os.path.join(self._services.folders.races, race_id)
        race = await asyncio.to_thread(read_race, folder)
        if race is None:
            await asyncio.to_thread(remove_tree, folder)
        elif race.state is RaceState.CLEANING:
            await self.clean(race_id)

    async def close(self) -> None:
        """Stop driving all races; the sessions of their runners go on."""
        await asyncio.gather(*(driver.close() for driver in self._drivers.values()), return_exceptions=True)

    async def begin(self, request: op.RaceBeginFields) -> Race:
        """Begin a race and return it. Raise RelayError if that is impossible; then nothing was made."""
        if not _FEWEST <= len(request.agents) <= _MOST:
            raise WrongUseError(f"a race takes {_FEWEST} to {_MOST} agents, not {len(request.agents)}")
        if not request.task.strip():
            raise WrongUseError("a race needs a task")
        for agent in request.agents:
            await self._runners.check(agent, request.env)
        begun = await asyncio.to_thread(self._build, request)
        now = self._services.clock.now()
        journal = await asyncio.to_thread(create_race, self._services.folders, begun, at=now)
        driver = self._build_driver(journal, request.env, task=request.task, test=request.test)
        driver.start()
        return driver.race

    async def resume(self, race_id: str, environ: dict[str, str]) -> Race:
        """Resume the race from its last line and return it. Raise WrongUseError if it is over."""
        async with self._turn:
            driver = self._drivers.get(race_id)
            if driver is not None and driver.is_active:
                return driver.race
            await self._let_go(race_id)
            journal = await asyncio.to_thread(self._open, race_id)
            race = journal.race
            if race is None or (race.state not in _UNDECIDED and find_race_step(race) is RaceStep.NOTHING):
                journal.close()
                raise WrongUseError(f"race {race_id} is over", hint="See: agent-relay race show")
            driver = self._build_driver(journal, environ)
            if race.state in _UNDECIDED:
                await driver.writer.write(RaceResumed())
            driver.start()
            return driver.race

    async def stop(self, race_id: str) -> Race:
        """Stop the race and its runners; it can be resumed. Raise WrongUseError if it is not running."""
        driver = self._drivers.get(race_id)
        if driver is None or not driver.is_active:
            raise WrongUseError(f"race {race_id[:26]} is not running", hint="See: agent-relay race list")
        await driver.stop(BY_HAND)
        return driver.race

    async def apply(self, race_id: str, number: int) -> tuple[Race, int]:
        """Apply runner `number`'s changes (0: the winner's) to the user's tree; return race and file count.

        If they could not be applied, the race says why. Raises RelayError if there is nothing to apply.
        """
        async with self._turn:
            driver = await self._hold(race_id)
            race = driver.race
            winner = race.verdict.winner if race.verdict is not None else 0
            chosen = number or winner
            if not chosen:
                why = "no runner won" if race.verdict else "the race is not decided yet"
                raise WrongUseError(f"{why}, so there is nothing to apply", hint="Name a runner: --runner N")
            if not 1 <= chosen <= len(race.runners):
                raise WrongUseError(f"race {race.id} has no runner {chosen}")
            if not race.get_runner(chosen).result:
                raise WrongUseError(f"{race.get_runner(chosen).name} has not come to an end yet")
            files = await driver.apply(chosen)
            return driver.race, files

    async def clean(self, race_id: str) -> list[str]:
        """Remove the race; return what had to stay in the repository. Raise RelayError on failure."""
        async with self._turn:
            driver = await self._hold(race_id)
            if driver.race.state is not RaceState.CLEANING:
                await driver.writer.write(RaceCleaning())
            race, workspace = driver.race, driver.workspace
            for runner in race.runners:
                if runner.tree:
                    await self._runners.stop(runner.tree)
            left = await asyncio.to_thread(workspace.remove, race)
            for runner in race.runners:
                if runner.tree:
                    await self._runners.forget(runner.tree)
            await self._let_go(race_id)
            # The journal goes last: until then it tells the next try what is left to do.
            await asyncio.to_thread(remove_tree, workspace.folder)
            self._services.teller.tell(race_id)
            return left

    def show(self, race_id: str) -> dict[str, object]:
        """Return the view of the race with what is only known while it runs. Reads disk."""
        driver = self._drivers.get(race_id)
        race = driver.race if driver is not None else self._read(race_id)
        view = build_race_view(race, self._services.clock.now())
        active = driver is not None and driver.is_active
        view |= {"active": active, "trouble": driver.trouble if driver is not None else ""}
        runners = view["runners"]
        if driver is not None and isinstance(runners, list):
            view["runners"] = [one | _build_live(driver, one["number"], one) for one in runners]
        return view

    def _build_driver(
        self, journal: RaceJournal, environ: dict[str, str], *, task: str = "", test: str = ""
    ) -> RaceDriver:
        driver = RaceDriver(self._services, journal, self._runners, environ, task=task, test=test)
        self._drivers[driver.race.id] = driver
        return driver

    async def _hold(self, race_id: str) -> RaceDriver:
        """Return the race's idle driver. Raise WrongUseError if it is active or there is no such race."""
        driver = self._drivers.get(race_id)
        if driver is not None:
            if driver.is_active:
                raise WrongUseError(f"race {race_id} is still under way", hint=_UNDER_WAY)
            return driver
        return self._build_driver(await asyncio.to_thread(self._open, race_id), {})

    async def _let_go(self, race_id: str) -> None:
        driver = self._drivers.pop(race_id, None)
        if driver is not None:
            await driver.close()

    def _open(self, race_id: str) -> RaceJournal:
        self._read(race_id)
        return RaceJournal(os.path.join(self._services.folders.races, race_id))

    def _read(self, race_id: str) -> Race:
        """Read the race from its journal. Raise WrongUseError if there is none."""
        folder = os.path.join(self._services.folders.races, race_id)
        race = read_race(folder) if is_ulid(race_id) else None
        if race is None:
            raise WrongUseError(f"there is no race {race_id[:26]!r}", hint="See: agent-relay race list")
        return race

    def _build(self, request: op.RaceBeginFields) -> RaceBegun:
        root = find_root(request.cwd)
        if root is None:
            check_repository(request.cwd)
            raise RelayError(f"{request.cwd} is in a repository without a work tree")
        check_version(root)
        head = check_repository(root)
        known = gather_secrets(root, request.env, cwd=request.cwd)
        below = os.path.relpath(os.path.realpath(request.cwd), os.path.realpath(root))
        return RaceBegun(
            race=self._services.create_id(),
            root=root,
            below="" if below == "." else below,
            head=head,
            task=redact_in_thread(request.task, known=known),
            agents=request.agents,
            test=redact_in_thread(request.test, known=known),
            test_limit_s=request.test_limit_s or _TEST_LIMIT_S,
            max_time_s=request.max_time_s,
            applies=request.apply,
        )


def _build_live(driver: RaceDriver, number: int, known: Mapping[str, object]) -> dict[str, object]:
    """Return what is only known while the race runs; figures of the journal take precedence."""
    live: dict[str, object] = {}
    changes, activity = driver.changes.get(number), driver.activities.get(number)
    if changes is not None and known["files"] is None:
        live |= {"files": changes.files, "added": changes.added, "removed": changes.removed}
    if activity is not None:
        live |= {"at_work": activity.agent, "doing": activity.doing}
    return live


def build_race_handlers(racing: RaceRegistry) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""

    async def begin(asked: op.RaceBeginFields, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.begin(asked)).id}

    async def resume(asked: op.RaceResumeFields, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.resume(asked.race, asked.env)).id}

    async def stop(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.stop(asked.race)).id}

    async def apply(asked: op.RaceApplyFields, _peer: Peer) -> Mapping[str, object]:
        race, files = await racing.apply(asked.race, asked.runner)
        runner = race.get_runner(race.applying)
        already = not race.failure and not files and runner.files > 0
        return {"files": files, "runner": runner.name, "why": race.failure, "already": already}

    async def clean(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return {"said": await racing.clean(asked.race)}

    async def show(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return await asyncio.to_thread(racing.show, asked.race)

    return dict(
        (
            op.RACE_BEGIN.performed_by(begin),
            op.RACE_RESUME.performed_by(resume),
            op.RACE_STOP.performed_by(stop),
            op.RACE_APPLY.performed_by(apply),
            op.RACE_CLEAN.performed_by(clean),
            op.RACE_SHOW.performed_by(show),
        )
    )
