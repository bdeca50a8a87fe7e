"""The one way into a session's room: it is found, taken up again or made, for one wish at a time."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace

from agent_relay.app.beginning import create_session
from agent_relay.app.begun import Begun, find_begun
from agent_relay.app.ground import Ground
from agent_relay.app.index import get_journal_path, move_entry, open_journal
from agent_relay.app.room import Room
from agent_relay.app.rooms import Rooms
from agent_relay.app.wishes import OpenWish, find_wished_root
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.session import State
from agent_relay.logic.fold import fold_events
from agent_relay.system.glances import list_moved_at, was_moved
from agent_relay.system.journal import read_events
from agent_relay.system.session_index import find_root

_log = logging.getLogger(__name__)


class Entrance:
    """One instance per daemon. `lock` is held while a room is looked for or made; nobody waits with it."""

    def __init__(self, ground: Ground, rooms: Rooms) -> None:
        self._ground = ground
        self._rooms = rooms
        self.lock = asyncio.Lock()

    @contextlib.asynccontextmanager
    async def hold(self, wish: OpenWish, message: str = "") -> AsyncIterator[Room | Begun]:
        """The room of the session wished for, or of a new one; nobody else comes in while it is held.

        Or where it began what was asked for as `message`, an id of the asker's; not what was given up before
        an agent had a part in it.
        What is left of the end of its last turn is waited for, without keeping others from other sessions.
        """
        root = await asyncio.to_thread(find_wished_root, wish.cwd)
        self._rooms.offer(wish.pack(), root=root, session=wish.session)
        is_patient = True
        while True:
            async with self.lock:
                known = await find_begun(self._ground, self._rooms, message, root=root, session=wish.session)
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
    async def enter(self, wish: OpenWish) -> AsyncIterator[Room]:
        """The same for what is asked for without an id."""
        async with self.hold(wish) as found:
            match found:
                case Room():
                    yield found
                case Begun():
                    raise AssertionError("unreachable")

    async def find(self, wish: OpenWish, root: str) -> Room | None:
        """The room of the session wished for, else of the one at work in `root`; `None` where there is none.

        Hold the lock, as for all that follows. Raises WrongUseError where the session named is unknown.
        """
        if wish.session:
            await self.follow_move(wish.session, root)
            if wish.session not in self._rooms:
                await self.reopen(wish.session)
            return self._rooms.get(wish.session)
        await self.enter_released(root)
        if wish.fresh:
            return None
        for session_id in await asyncio.to_thread(list_moved_at, root, self._ground.folders.sessions):
            await self.follow_move(session_id, root)
        here = [session for session in self._rooms.at_work() if session.root == root]
        going = [
            one for one in here if one.state is not State.STOPPING and not (one.leg and one.leg.headless)
        ]
        return self._rooms.get(going[0].id) if going else None

    async def create(self, wish: OpenWish, root: str) -> Room:
        """The room of a new session, without a leg or with the one adopted from `wish.source`."""
        async with self._rooms.trees.enter(root):
            journal, past = await create_session(self._ground, wish, root, self._rooms.at_work())
            room = self._rooms.add(journal)
        if past.bodies:
            await room.host.ask(past)
        return room

    async def follow_move(self, session_id: str, root: str) -> None:
        """The session is at work in `root` if its folder was moved there; raises RelayError as `reopen`."""
        folders = self._ground.folders
        if not await asyncio.to_thread(was_moved, root, folders.sessions, session_id):
            return
        _log.info("session-moved session=%s", session_id)
        before = await asyncio.to_thread(find_root, folders.sessions, session_id)
        await self._rooms.let_go(session_id)
        await self._rooms.trees.follow_move(before, root)
        await asyncio.to_thread(move_entry, folders, session_id, root)
        await self.reopen(session_id)

    async def reopen(self, session_id: str) -> None:
        """The session is at work again, be it without a leg."""
        folders = self._ground.folders
        root = await asyncio.to_thread(find_root, folders.sessions, session_id)
        if not root:
            raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
        path = get_journal_path(root, session_id)
        if not await asyncio.to_thread(os.path.exists, path):
            raise RelayError(f"the journal {path} is gone")
        await self._enter(session_id, root)

    async def take_over(self, root: str) -> None:
        """The tree is ours, on the word of a person that its owner nobody here can see is gone.

        Raises TreeOwnedError where that one lives.
        """
        async with self.lock, self._rooms.trees.enter(root, by_hand=True):
            await self.enter_released(root)

    async def enter_released(self, root: str) -> None:
        """Take up the sessions in `root` that another owner had.

        Raise TreeOwnedError where that one still has them.
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
        folders = self._ground.folders
        async with self._rooms.trees.enter(root):
            journal = await asyncio.to_thread(open_journal, folders, session_id, root)
            await self._rooms.reopen(journal, root)
