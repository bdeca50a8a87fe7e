"""What a race needs of whoever works in a folder: begin on a task, be watched to the end, be stopped."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from agent_relay.app.ground import Ground
from agent_relay.app.index import read_index
from agent_relay.app.sessions import Sessions
from agent_relay.app.wishes import OpenWish
from agent_relay.domain.errors import RelayError
from agent_relay.domain.race import How
from agent_relay.domain.session import Session, State

_LOOK_S = 0.25
_STOP_S = 30.0


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
    """How a runner's work ended; `status` is its agent's, -1 where it has none."""

    how: How
    status: int = -1
    why: str = ""


class Runners(Protocol):
    """Where runners work: sessions of relay, with failover."""

    async def start(self, wish: RunnerWish) -> str:
        """The session at work in `wish.tree`: one that is there already, or a new one.

        Raises RelayError where there can be none.
        """
        ...

    async def watch(self, session: str, tell: Callable[[Seen], None]) -> Ended:
        """How it ended; `tell` hears meanwhile how it is doing."""
        ...

    async def stop(self, tree: str) -> None:
        """Nobody works in the worktree any more."""
        ...

    async def forget(self, tree: str) -> None:
        """The user's list of sessions does not name those of the worktree."""
        ...


class SessionRunners:
    """Runners as relay's sessions; one turn each."""

    def __init__(self, sessions: Sessions, ground: Ground) -> None:
        self._sessions = sessions
        self._ground = ground

    async def start(self, wish: RunnerWish) -> str:
        """The session at work in the worktree: taken up, continued, or begun. Raises RelayError."""
        here = self._find(wish.tree)
        if here is not None:
            return here.id
        opened, _ = await self._sessions.open(
            OpenWish(
                wish.agent,
                wish.cwd,
                wish.environ,
                task=wish.task,
                fresh=True,
            )
        )
        return opened.id

    async def watch(self, session: str, tell: Callable[[Seen], None]) -> Ended:
        """How the turn ended; one that rests or was refused ends so."""
        while True:
            try:
                found = self._sessions.get(session).session
            except RelayError:
                return Ended(How.LOST, why="its session is not at work any more")
            tell(_see(found))
            ended = _find_end(found)
            if ended is not None:
                await self.stop(found.root)
                return ended
            await asyncio.sleep(_LOOK_S)

    async def stop(self, tree: str) -> None:
        """Every session of the worktree has ended, or had its time to."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                while (found := self._find(tree)) is not None:
                    if found.state is not State.STOPPING:
                        with contextlib.suppress(RelayError):
                            await self._sessions.stop_session(found.id)
                    await asyncio.sleep(_LOOK_S)

    async def forget(self, tree: str) -> None:
        """The index does not name sessions of the worktree."""
        await asyncio.to_thread(self._forget, tree)

    def _forget(self, tree: str) -> None:
        for session, root in read_index(self._ground.folders.sessions).items():
            if root == tree:
                with contextlib.suppress(OSError):
                    os.unlink(f"{self._ground.folders.sessions}/{session}.json")

    def _find(self, tree: str) -> Session | None:
        here = (session for session in self._sessions.at_work() if session.root == tree)
        return next(here, None)


def _see(session: Session) -> Seen:
    return Seen(agent=session.agent, doing=session.state.value)


def _find_end(session: Session) -> Ended | None:
    leg = session.leg
    if session.refusal is not None:
        return Ended(How.FAILED, why=session.refusal.text)
    match session.state:
        case State.RESTING:
            return Ended(
                How.LIMITED, why=f"nobody is available ({'; '.join(session.skipped) or session.why})"
            )
        case State.ENDED:
            status = leg.status if leg is not None else -1
            how = How.FINISHED if status == 0 else How.FAILED
            return Ended(how, status, "" if status == 0 else session.why or f"the agent ended with {status}")
        case State.READY if leg is not None and leg.was_busy:
            return Ended(How.FINISHED, 0)
        case _:
            return None
