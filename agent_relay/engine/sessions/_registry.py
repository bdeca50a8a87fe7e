"""The sessions at work in this daemon by id, and a way to wait until one of them changes."""

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from agent_relay.detect.window_usage import WindowUsage
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.domain.values.elapsed import has_passed
from agent_relay.domain.values.ids import AgentName
from agent_relay.engine._tree_claims import TreeClaims
from agent_relay.engine.legs.holder_retention import (
    UNREAD_RETENTION,
    forget_streams,
    note_ended,
    release_legs,
)
from agent_relay.engine.legs.live_leg import LaunchEnvironment
from agent_relay.engine.narrative_writer import NarrativeWriter
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.active_session import ActiveSession, activate_session
from agent_relay.engine.sessions.change_notifier import ChangeNotifier
from agent_relay.session.adoption import build_move
from agent_relay.session.outcome import Outcome
from agent_relay.store.session_journals import SessionJournal, ensure_indexed

if TYPE_CHECKING:
    from agent_relay.store.tree_owner import TreeOwnedError

_log = logging.getLogger(__name__)
_REMEMBERED = timedelta(minutes=1)
"""How long an ended session stays at work: terminals still ask how it ended."""

_SETTLED_S = 5.0


class SessionRegistry:
    """The sessions at work in one daemon. Use it from the event loop only.

    `changes` counts the changes of all sessions. `trees` are the working trees claimed for them.
    `owned_elsewhere` are the sessions another owner has, or may have, each with the error for the user: they
    are left alone.
    """

    def __init__(self, services: Services, narrating: NarrativeWriter) -> None:
        self._services = services
        self._narrating = narrating
        self._rooms: dict[str, ActiveSession] = {}
        self.changes = ChangeNotifier()
        self._changes = asyncio.Condition()
        self._wakers: set[asyncio.Task[None]] = set()
        self.trees = TreeClaims(services.owner, self._is_at_work_in)
        self.owned_elsewhere: dict[str, TreeOwnedError] = {}

    def __contains__(self, session_id: object) -> bool:
        """Tell whether the session is in the registry."""
        return session_id in self._rooms

    def get(self, session_id: str) -> ActiveSession:
        """Return the session of that id.

        Raises WrongUseError if no such session is at work, TreeOwnedError if another owner has it.
        """
        room = self._rooms.get(session_id)
        if room is None and session_id in self.owned_elsewhere:
            raise self.owned_elsewhere[session_id]
        if room is None:
            raise WrongUseError(f"no session {session_id[:26]} is at work", hint="See: agent-relay sessions")
        return room

    def __iter__(self) -> Iterator[ActiveSession]:
        """Iterate over all sessions, including those that ended a moment ago."""
        return iter(list(self._rooms.values()))

    def at_work(self) -> list[Session]:
        """Return the sessions that have not ended, newest change first."""
        living = [room.session for room in self._rooms.values() if room.session.state is not State.ENDED]
        return sorted(living, key=lambda session: session.updated_at, reverse=True)

    async def look(self) -> None:
        """Bring all sessions up to what their journals show by now, and the index to those at work."""
        await asyncio.to_thread(self._name_all, self.at_work())
        await asyncio.gather(*(room.host.look() for room in self))

    def list_windows(self) -> dict[str, tuple[WindowUsage, ...]]:
        """Return, by agent, the usage windows it last reported, in whichever session."""
        return self._services.windows.list_known(self._services.clock.now())

    def find_sign_in(self, agent: str) -> str:
        """Return what a person types to sign in to `agent`; empty if its adapter does not say it."""
        loaded = self._services.adapters.get(AgentName(agent))
        return loaded.adapter.sign_in if loaded is not None else ""

    def add(self, journal: SessionJournal) -> ActiveSession:
        """Add the journal's session, at work from now on, and return it."""
        room = activate_session(
            self._services, self._narrating, self.trees, journal, changed=self._changed, above=self.changes
        )
        self._rooms[room.session.id] = room
        self.owned_elsewhere.pop(room.session.id, None)
        return room

    async def reopen(self, journal: SessionJournal, root: str) -> None:
        """Reopen the journal's session and monitor its leg if that lives; keep nothing of it if this fails.

        It is in `root` now, whatever its journal says so far.
        """
        room = self.add(journal)
        if room.session.root != root:
            room.host.tell(Outcome((build_move(room.session, root),)))
        if room.session.state is State.ENDED:
            return
        news = None
        try:
            news = await room.stage.adopt(room.session)
        finally:
            if news is None:
                self._rooms.pop(room.session.id, None)
                await room.close()
        # What follows may be the start of an agent, which needs the user's environment.
        room.host.tell(news, ready=None if news.leg_lives else room.stage.await_luggage)

    def offer(self, luggage: LaunchEnvironment, *, root: str, session: str = "") -> None:
        """Offer `luggage` from a terminal in `root` to its sessions that lost theirs, or to the one named."""
        for room in self:
            if room.session.id == session or (not session and room.session.root == root):
                room.stage.offer(luggage)

    async def let_go(self, session_id: str) -> None:
        """Stop everything of the session in this process; its agent and holder are left as they are."""
        room = self._rooms.pop(session_id, None)
        if room is not None:
            await room.close()

    async def retire(self) -> None:
        """Remove the sessions that ended a while ago: each holds a file and a task."""
        now = self._services.clock.now()
        for room in list(self._rooms.values()):
            session = room.session
            remembered = _REMEMBERED if session.turn is None or room.is_read() else UNREAD_RETENTION
            is_old = has_passed(remembered, session.updated_at, now)
            if session.state is State.ENDED and is_old and room.host.is_idle:
                del self._rooms[session.id]
                await room.close()
                await forget_streams(self._services, session)
                await note_ended(self._services, session)

    async def abandon(self, session_id: str) -> Session:
        """End everything of a session whose folder is gone; return it as it last was."""
        room = self._rooms.pop(session_id)
        await room.abandon()
        legs = tuple(replace(leg, how=leg.how or "lost") for leg in room.session.legs)
        left = replace(room.session, legs=legs)
        await release_legs(self._services, left)
        await forget_streams(self._services, left)
        await self.trees.tidy(room.session.root)
        return room.session

    async def settle(self) -> None:
        """Wait until every session's inputs are processed, as far as disks allow, or 5 s have passed.

        A session that a new daemon found may have ended before anybody could be at work in it.
        """
        await self.changes.wait_while(
            lambda: any(not (room.host.is_idle or room.host.refusal) for room in self), _SETTLED_S
        )

    async def wait_until(self, is_so: Callable[[], bool], *, limit_s: float) -> None:
        """Wait until `is_so` is true, checked after every change of a session.

        Raises TimeoutError after `limit_s` seconds.
        """
        async with asyncio.timeout(limit_s), self._changes:
            await self._changes.wait_for(is_so)

    async def see_out(self, limit_s: float) -> None:
        """Wait until what is ending has ended and was collected, at most `limit_s` seconds.

        The next daemon has to do the rest then.
        """
        if not await self.changes.wait_while(lambda: any(room.is_ending for room in self), limit_s):
            _log.info("still-ending sessions=%d", sum(room.is_ending for room in self))

    async def close(self) -> None:
        """Stop everything in this process; agents and holders are left as they are."""
        await asyncio.gather(*(room.close() for room in self._rooms.values()), return_exceptions=True)
        self.trees.close()

    def _is_at_work_in(self, root: str) -> bool:
        return any(
            room.session.root == root and room.session.state is not State.ENDED
            for room in self._rooms.values()
        )

    def _name_all(self, sessions: list[Session]) -> None:
        for session in sessions:
            ensure_indexed(self._services.folders, session)

    def _changed(self, session: Session) -> None:
        self._services.teller.tell(session.id)
        waker = asyncio.create_task(self._wake(session), name="changed")
        self._wakers.add(waker)
        waker.add_done_callback(self._wakers.discard)

    async def _wake(self, session: Session) -> None:
        if session.state is not State.ENDED:
            await asyncio.to_thread(ensure_indexed, self._services.folders, session)
        async with self._changes:
            self._changes.notify_all()
        if session.state is not State.ENDED:
            return
        await self.trees.tidy(session.root)
        room = self._rooms.get(session.id)
        if room is not None and room.is_read():
            # Who followed its last turn may have read all of it before the session was over.
            await forget_streams(self._services, session)
