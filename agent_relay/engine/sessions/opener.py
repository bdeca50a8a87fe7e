"""Finds, reopens or creates a session, one request at a time; finds a turn again by its message's id.

A turn may begin before its request is answered: a repeated request with the same id gets the same turn.
"""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.turn import TurnBegun
from agent_relay.domain.state import State
from agent_relay.domain.values.project_layout import get_journal_path
from agent_relay.domain.values.ulid import is_ulid, read_moment_ms
from agent_relay.engine.services import Services
from agent_relay.engine.sessions._creation import create_session
from agent_relay.engine.sessions._registry import SessionRegistry
from agent_relay.engine.sessions.active_session import ActiveSession
from agent_relay.engine.sessions.open_request import OpenRequest, find_requested_root
from agent_relay.session.fold import fold_events
from agent_relay.session.turn_state import find_turn_by_message
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, write_entry
from agent_relay.store.session_journals import find_journal, open_journal
from agent_relay.store.session_summaries import list_moved_at, list_sessions_at, was_moved

_log = logging.getLogger(__name__)


_EARLIER_MS = 60_000
"""How much older than the message the journal that has it may seem: clocks are set, disks count coarsely."""


@dataclass(frozen=True, slots=True)
class TurnStart:
    """Where a turn begins: its session, and the number of its first line.

    With `is_given_up` it is over, and no agent was asked.
    """

    session: str
    number: int
    is_given_up: bool = False


async def find_turn_by_message_id(
    services: Services, rooms: SessionRegistry, message: str, *, root: str, session: str
) -> TurnStart | None:
    """Return the turn begun for `message`, an id of the requester's; `None` if none has, or it is empty.

    It is looked for in the sessions at work, in `session`, and in those of the working tree `root` that
    changed since the id was made. Raises WrongUseError for what is no id.
    """
    if not message:
        return None
    if not is_ulid(message):
        raise WrongUseError("a message is named by a ULID")
    for room in rooms:
        found = find_turn_by_message(room.host.events, message)
        if found is not None:
            return TurnStart(room.session.id, *found)
    since_s = (read_moment_ms(message) - _EARLIER_MS) / 1000
    for session_id in await asyncio.to_thread(_list_candidates, root, session):
        if session_id not in rooms:
            found = find_turn_by_message(
                await asyncio.to_thread(_read_since, services, root, session_id, since_s), message
            )
            if found is not None:
                return TurnStart(session_id, *found)
    return None


def get_newest(room: ActiveSession) -> TurnStart:
    """Return where the newest turn of a session at work begins."""
    numbers = [line.number for line in room.host.events if isinstance(line.body, TurnBegun)]
    return TurnStart(room.session.id, numbers[-1])


def _list_candidates(root: str, session: str) -> list[str]:
    """List the session asked for, and those whose folders are in the working tree, newest first."""
    return sorted({*list_sessions_at(root), *([session] if session else [])}, reverse=True)


def _read_since(services: Services, root: str, session_id: str, since_s: float) -> Sequence[Event]:
    """Return the events of a journal; none if it has not changed since, is foreign or cannot be read."""
    with contextlib.suppress(OSError, RelayError):
        near = get_journal_path(root, session_id)
        if os.path.lexists(near) and os.stat(near).st_mtime < since_s:
            return ()
        path = find_journal(services.folders, session_id)
        if path and os.stat(path).st_mtime >= since_s:
            return read_events(path)
    return ()


class SessionOpener:
    """Opens a daemon's sessions. `lock` is held while one is looked for or made, but not during waits."""

    def __init__(self, services: Services, rooms: SessionRegistry) -> None:
        self._services = services
        self._rooms = rooms
        self.lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def hold(self, wish: OpenRequest, message: str = "") -> AsyncIterator[ActiveSession | TurnStart]:
        """Yield the requested session, or a new one; no other request gets in while it is held.

        If the turn for `message`, an id of the requester's, has begun, yields where it began instead, unless
        it was given up before an agent had a part in it. The rest of the end of the session's last turn is
        waited for, without keeping others from other sessions.
        """
        root = await asyncio.to_thread(find_requested_root, wish.cwd)
        self._rooms.offer(wish.pack(), root=root, session=wish.session)
        is_patient = True
        while True:
            async with self.lock:
                known = await find_turn_by_message_id(
                    self._services, self._rooms, message, root=root, session=wish.session
                )
                if known is not None and not known.is_given_up:
                    yield known
                    return
                if known is not None:
                    wish = replace(wish, session=known.session, fresh=False)
                await self._rooms.retire()
                room = await self.find(wish, root) or await self.create(wish, root)
                if not (is_patient and room.is_leaving):
                    yield room
                    return
            # The same one again, even if it was made just now.
            wish = replace(wish, session=room.session.id, fresh=False)
            is_patient = await room.see_end()

    @contextlib.asynccontextmanager
    async def enter(self, wish: OpenRequest) -> AsyncIterator[ActiveSession]:
        """Yield the session for a request without an id."""
        async with self.hold(wish) as found:
            match found:
                case ActiveSession():
                    yield found
                case TurnStart():
                    raise AssertionError("unreachable")

    async def find(self, wish: OpenRequest, root: str) -> ActiveSession | None:
        """Return the requested session, else the one at work in `root`; `None` if there is none.

        Hold the lock, as for all that follows. Raises WrongUseError if the session named is unknown.
        """
        if wish.session:
            await self.follow_move(wish.session, root)
            if wish.session not in self._rooms:
                await self.reopen(wish.session)
            return self._rooms.get(wish.session)
        await self.enter_released(root)
        if wish.fresh:
            return None
        for session_id in await asyncio.to_thread(list_moved_at, root, self._services.folders.sessions):
            await self.follow_move(session_id, root)
        here = [session for session in self._rooms.at_work() if session.root == root]
        going = [
            one for one in here if one.state is not State.STOPPING and not (one.leg and one.leg.headless)
        ]
        return self._rooms.get(going[0].id) if going else None

    async def create(self, wish: OpenRequest, root: str) -> ActiveSession:
        """Create a session, without a leg or with the one adopted from `wish.source`, and return it."""
        async with self._rooms.trees.enter(root):
            journal, past = await create_session(self._services, wish, root, self._rooms.at_work())
            room = self._rooms.add(journal)
        if past.bodies:
            await room.host.ask(past)
        return room

    async def follow_move(self, session_id: str, root: str) -> None:
        """Reopen the session in `root` if its folder was moved there; raise RelayError as `reopen` does."""
        folders = self._services.folders
        if not await asyncio.to_thread(was_moved, root, folders.sessions, session_id):
            return
        _log.info("session-moved session=%s", session_id)
        before = await asyncio.to_thread(find_root, folders.sessions, session_id)
        await self._rooms.let_go(session_id)
        await self._rooms.trees.follow_move(before, root)
        await asyncio.to_thread(write_entry, folders.sessions, session_id, root=root, cwd=root)
        await self.reopen(session_id)

    async def reopen(self, session_id: str) -> None:
        """Reopen the session, with or without a leg.

        Raises WrongUseError if it is unknown, RelayError if its journal is gone.
        """
        folders = self._services.folders
        root = await asyncio.to_thread(find_root, folders.sessions, session_id)
        if not root:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        path = get_journal_path(root, session_id)
        if not await asyncio.to_thread(os.path.exists, path):
            raise RelayError(f"the journal {path} is gone")
        await self._enter(session_id, root)

    async def take_over(self, root: str) -> None:
        """Claim the tree, because a person says that its owner, which cannot be seen from here, is gone.

        Raises TreeOwnedError if that owner lives.
        """
        async with self.lock, self._rooms.trees.enter(root, by_hand=True):
            await self.enter_released(root)

    async def enter_released(self, root: str) -> None:
        """Reopen the sessions in `root` that another owner had.

        Raises TreeOwnedError if that owner still has them.
        """
        for session_id, known in list(self._rooms.owned_elsewhere.items()):
            if known.root == root:
                await self._enter_released(session_id, root)

    async def _enter_released(self, session_id: str, root: str) -> None:
        path = get_journal_path(root, session_id)
        session = fold_events(await asyncio.to_thread(read_events, path))
        if session is None or session.state is State.ENDED:
            self._rooms.owned_elsewhere.pop(session_id, None)
        else:
            await self._enter(session_id, root)

    async def _enter(self, session_id: str, root: str) -> None:
        folders = self._services.folders
        async with self._rooms.trees.enter(root):
            journal = await asyncio.to_thread(open_journal, folders, session_id, root)
            await self._rooms.reopen(journal, root)
