"""What a race needs of whoever works in a folder: begin on a task, be watched to the end, be stopped."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent_relay.app.ground import Ground
from agent_relay.app.headless_legs import load_for
from agent_relay.app.index import get_journal_path
from agent_relay.app.launching import get_program
from agent_relay.app.running import Running
from agent_relay.app.sessions import Sessions
from agent_relay.app.wishes import OpenWish
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.race import How
from agent_relay.domain.run_event import Ended as TurnOver
from agent_relay.domain.session import Leg, Session, State
from agent_relay.logic.fold import fold_events
from agent_relay.logic.turn_report import report_end
from agent_relay.system.journal import read_events
from agent_relay.system.session_index import list_index, remove_entry

_LOOK_S = 0.25
_STOP_S = 30.0
_GO_ON = (
    "You were stopped in the middle of this. Go on with it; what you did so far is in the working tree.\n\n"
)


@dataclass(frozen=True, slots=True)
class RunnerWish:
    """An agent at `task` in folder `cwd` of the worktree `tree`, with the user's environment.

    `session` is the one it worked in before it was stopped, empty for none.
    """

    agent: str
    task: str
    tree: str
    cwd: str
    environ: dict[str, str] = field(repr=False)
    session: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """Who works for a runner right now, and what they are doing."""

    agent: str = ""
    doing: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a runner's work ended; `status` is its agent's, -1 where it has none.

    With `never_began` no agent of it ever ran: it can be started again without doing anything twice.
    """

    how: How
    status: int = -1
    why: str = ""
    never_began: bool = False


class Runners(Protocol):
    """Where runners work: sessions of relay, with failover."""

    async def check(self, agent: str, environ: Mapping[str, str]) -> None:
        """Raises RelayError where the agent could not be a runner."""
        ...

    async def start(self, wish: RunnerWish) -> str:
        """The session at work in `wish.tree`: one that is there already, or a new one.

        Raises RelayError where there can be none.
        """
        ...

    async def watch(self, session: str, tree: str, tell: Callable[[Seen], None]) -> Ended:
        """How it ended; `tell` hears meanwhile how it is doing."""
        ...

    async def stop(self, tree: str) -> None:
        """Nobody works in the worktree any more."""
        ...

    async def forget(self, tree: str) -> None:
        """The user's list of sessions does not name those of the worktree."""
        ...


class SessionRunners:
    """Runners as headless turns of relay's sessions, one turn each."""

    def __init__(self, sessions: Sessions, ground: Ground) -> None:
        self._sessions = sessions
        self._ground = ground
        self._running = Running(sessions, ground)

    async def check(self, agent: str, environ: Mapping[str, str]) -> None:
        """Raises RelayError where the agent is not installed or knows no headless work."""
        leg = Leg("", agent, 0, self._ground.clock.now(), headless=True)
        await asyncio.to_thread(get_program, load_for(self._ground, leg), environ)

    async def start(self, wish: RunnerWish) -> str:
        """The session at work in the worktree: taken up, continued, or begun. Raises RelayError."""
        for session in await asyncio.to_thread(self._list_sessions, wish.tree):
            found = await self._read(session, wish.tree)
            if found is not None and _asked_nobody(found):
                # A daemon that was killed had no time to give it its task, or to ask anybody.
                return await self._begin(wish, session, wish.task)
            if found is not None and (session != wish.session or self._is_at_work(session)):
                await self._check_ours(session)
                return session
        return await self._begin(wish, wish.session, f"{_GO_ON if wish.session else ''}{wish.task}")

    async def watch(self, session: str, tree: str, tell: Callable[[Seen], None]) -> Ended:
        """How the turn ended; one that rests or was refused ends so."""
        while True:
            found = await self._read(session, tree)
            if found is None:
                return Ended(How.LOST, why="its session is gone")
            tell(Seen(found.agent, found.shown_state.value))
            if not await asyncio.to_thread(os.path.isdir, tree):
                await self.stop(tree)
                return Ended(How.LOST, why="its worktree was removed")
            over = report_end(found, self._sessions.zone)
            if over is not None:
                await self.stop(tree)
                with contextlib.suppress(RelayError):
                    await self._running.forget(session)
                return _judge(over, found.leg)
            await asyncio.sleep(_LOOK_S)

    async def stop(self, tree: str) -> None:
        """Every session of the worktree has ended, or had its time to.

        Raises TreeOwnedError where another owner has one: what is removed next would go from under its agent.
        """
        async with self._sessions.entrance.lock:
            await self._sessions.entrance.enter_released(tree)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                while here := [one for one in self._sessions.at_work() if one.root == tree]:
                    for one in here:
                        if one.state is not State.STOPPING:
                            with contextlib.suppress(RelayError):
                                await self._sessions.stop_session(one.id)
                    await asyncio.sleep(_LOOK_S)

    async def _begin(self, wish: RunnerWish, session: str, task: str) -> str:
        given = OpenWish(wish.agent, wish.cwd, wish.environ, task=task, session=session, fresh=not session)
        begun, _ = await self._running.begin(given, 0)
        return begun

    async def forget(self, tree: str) -> None:
        """The index does not name sessions of the worktree."""
        await asyncio.to_thread(self._forget, tree)

    def _forget(self, tree: str) -> None:
        for session in self._list_sessions(tree):
            with contextlib.suppress(RelayError):
                remove_entry(self._ground.folders.sessions, session)

    def _list_sessions(self, tree: str) -> list[str]:
        """The sessions of the worktree, newest first."""
        index = list_index(self._ground.folders.sessions)
        return [session for session, root in reversed(index) if root == tree]

    async def _check_ours(self, session: str) -> None:
        """Raises TreeOwnedError where another owner has the session: nobody here would see it end."""
        with contextlib.suppress(WrongUseError):
            await self._sessions.find(session)

    def _is_at_work(self, session: str) -> bool:
        return any(one.id == session for one in self._sessions.at_work())

    async def _read(self, session: str, tree: str) -> Session | None:
        """The session as it is, also where it ended while no daemon was there; `None` where it is gone."""
        with contextlib.suppress(RelayError):
            return self._sessions.get(session).session
        try:
            return fold_events(await asyncio.to_thread(read_events, get_journal_path(tree, session)))
        except RelayError:
            return None


def _asked_nobody(session: Session) -> bool:
    """Whether the session has no turn, or one that was ended before any agent was asked."""
    turn = session.turn
    return turn is None or turn.never_began or (session.leg is None and turn.outcome == "stopped")


def _judge(over: TurnOver, leg: Leg | None) -> Ended:
    is_killed = leg is None and over.outcome == "stopped"
    if over.never_began or is_killed or (leg is not None and leg.how == "lost" and not leg.child_pid):
        return Ended(How.LOST, why=over.why, never_began=True)
    match over.outcome:
        case "done":
            return Ended(How.FINISHED, 0)
        case "resting":
            return Ended(How.LIMITED, why=over.message or "; ".join(over.skipped))
        case _:
            return Ended(How.FAILED, why=over.why or over.outcome)
