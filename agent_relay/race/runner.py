"""Run one agent of a race as a headless turn: start it, watch it to its end, stop it, count its usage.

Turns, tokens and cost are read from the agents' own records.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from datetime import datetime

import msgspec

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import get_journal_path
from agent_relay.domain.protocol.run_output import Ended as TurnOver
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from agent_relay.domain.values import Confidential
from agent_relay.engine.legs.leg_start import check_headless
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.commands import stop_session
from agent_relay.engine.sessions.creation import OpenRequest
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.turn_operations import HeadlessTurns
from agent_relay.race._events import RunnerCounted
from agent_relay.race.model import Runner, RunnerOutcome
from agent_relay.session.turns.report import report_end
from agent_relay.store.journal import read_session
from agent_relay.store.session_index import list_index, remove_entry
from agent_relay.system.disk.folders import Folders
from agent_relay.usage.aggregation import Question, sum_rows
from agent_relay.usage.gather import Wanted, gather_metrics
from agent_relay.usage.table_format import render_cost
from agent_relay.usage.totals import PriceList


def read_runner_usage(
    folders: Folders, runner: Runner, environ: Mapping[str, str], now: datetime
) -> RunnerCounted:
    """Return what was used in the runner's worktree so far. Reads disk. Raise RelayError on failure."""
    gathered = gather_metrics(folders, Wanted(), cwd=runner.tree, environ=environ, now=now)
    question = Question("agent", PriceList().get_rates)
    _, total = sum_rows(gathered.works, gathered.natives, question)
    bill = total.bill
    if not bill.answers:
        return RunnerCounted(runner.number, total.turns)
    is_whole = not bill.unpriced and not total.untold
    cost = render_cost(bill.cost, is_whole=is_whole) if bill.cost is not None else ""
    return RunnerCounted(runner.number, total.turns, bill.tokens, cost)


_LOOK_S = 0.25
_STOP_S = 30.0
_GO_ON = (
    "You were stopped in the middle of this. Go on with it; what you did so far is in the working tree.\n\n"
)


class RunnerRequest(Confidential, frozen=True):
    """A request to run an agent on `task` in folder `cwd` of the worktree `tree`, in the user's environment.

    `session` is the one it worked in before it was stopped, empty for none.
    """

    agent: str
    task: str
    tree: str
    cwd: str
    environ: dict[str, str]
    session: str = ""


class RunnerActivity(msgspec.Struct, frozen=True):
    """The agent that works for a runner right now, and what it is doing."""

    agent: str = ""
    doing: str = ""


class RunnerResult(msgspec.Struct, frozen=True):
    """End of a runner's work; `status` is its agent's exit status, -1 for none.

    With `never_began` none of its agents ever ran: it can be started again without doing anything twice.
    """

    how: RunnerOutcome
    status: int = -1
    why: str = ""
    never_began: bool = False


class SessionRunners:
    """Runners as headless turns of relay's sessions, one turn each."""

    def __init__(self, sessions: SessionRegistry, services: Services) -> None:
        self._sessions = sessions
        self._services = services
        self._running = HeadlessTurns(sessions, services)

    async def check(self, agent: str, environ: Mapping[str, str]) -> None:
        """Check the agent; raise RelayError if it is not installed or cannot work headless."""
        await asyncio.to_thread(check_headless, self._services, agent, environ)

    async def start(self, request: RunnerRequest) -> str:
        """Start the runner and return its session: one that is in the worktree already, or a new one.

        Raises RelayError if it cannot be started.
        """
        for session in await asyncio.to_thread(self._list_sessions, request.tree):
            found = await self._read(session, request.tree)
            if found is not None and _was_never_asked(found):
                # A daemon that was killed had no time to give it its task, or to ask an agent.
                return await self._begin(request, session, request.task)
            if found is not None and (session != request.session or self._is_at_work(session)):
                await self._check_ours(session)
                return session
        task = f"{_GO_ON}{request.task}" if request.session else request.task
        return await self._begin(request, request.session, task)

    async def watch(self, session: str, tree: str, note: Callable[[RunnerActivity], None]) -> RunnerResult:
        """Wait for the turn's end, which may be a rest or a refusal; `note` its activity meanwhile."""
        while True:
            found = await self._read(session, tree)
            if found is None:
                return RunnerResult(RunnerOutcome.LOST, why="its session is gone")
            note(RunnerActivity(found.agent, found.shown_state.value))
            if not await asyncio.to_thread(os.path.isdir, tree):
                await self.stop(tree)
                return RunnerResult(RunnerOutcome.LOST, why="its worktree was removed")
            over = report_end(found, self._services.zone)
            if over is not None:
                await self.stop(tree)
                with contextlib.suppress(RelayError):
                    await self._running.forget(session)
                return _judge(over, found.leg)
            await asyncio.sleep(_LOOK_S)

    async def stop(self, tree: str) -> None:
        """Stop every session of the worktree; return when all have ended, or after 30 s.

        Raises TreeOwnedError if another owner has one: removing the tree would take it from under its agent.
        """
        async with self._sessions.lock:
            await self._sessions.enter_released(tree)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                while here := [one for one in self._sessions.at_work() if one.root == tree]:
                    for one in here:
                        if one.state is not State.STOPPING:
                            with contextlib.suppress(RelayError):
                                await stop_session(self._sessions, one.id)
                    await asyncio.sleep(_LOOK_S)

    async def _begin(self, request: RunnerRequest, session: str, task: str) -> str:
        given = OpenRequest(
            request.agent, request.cwd, request.environ, task=task, session=session, fresh=not session
        )
        begun, _ = await self._running.begin(given, 0)
        return begun

    async def forget(self, tree: str) -> None:
        """Remove the worktree's sessions from the user's index."""
        await asyncio.to_thread(self._forget, tree)

    def _forget(self, tree: str) -> None:
        for session in self._list_sessions(tree):
            with contextlib.suppress(RelayError):
                remove_entry(self._services.folders.sessions, session)

    def _list_sessions(self, tree: str) -> list[str]:
        """Return the sessions of the worktree, newest first."""
        index = list_index(self._services.folders.sessions)
        return [session for session, root in reversed(index) if root == tree]

    async def _check_ours(self, session: str) -> None:
        """Raise TreeOwnedError if another owner has the session: its end would go unseen here."""
        with contextlib.suppress(WrongUseError):
            await self._sessions.find(session)

    def _is_at_work(self, session: str) -> bool:
        return any(one.id == session for one in self._sessions.at_work())

    async def _read(self, session: str, tree: str) -> Session | None:
        """Return the session, also one that ended while no daemon ran; `None` if it is gone."""
        with contextlib.suppress(RelayError):
            return self._sessions.get(session).session
        try:
            return await asyncio.to_thread(read_session, get_journal_path(tree, session))
        except RelayError:
            return None


def _was_never_asked(session: Session) -> bool:
    """Tell whether the session has no turn, or one that was ended before any agent was asked."""
    turn = session.turn
    return turn is None or turn.never_began or (session.leg is None and turn.outcome == "stopped")


def _judge(over: TurnOver, leg: Leg | None) -> RunnerResult:
    is_killed = leg is None and over.outcome == "stopped"
    if over.never_began or is_killed or (leg is not None and leg.how == "lost" and not leg.child_pid):
        return RunnerResult(RunnerOutcome.LOST, why=over.why, never_began=True)
    match over.outcome:
        case "done":
            return RunnerResult(RunnerOutcome.FINISHED, 0)
        case "resting":
            return RunnerResult(RunnerOutcome.LIMITED, why=over.message or "; ".join(over.skipped))
        case _:
            return RunnerResult(RunnerOutcome.FAILED, why=over.why or over.outcome)
