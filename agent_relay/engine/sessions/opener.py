"""Finds, reopens or creates a session, one request at a time."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from dataclasses import replace

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.state import State
from agent_relay.domain.values.project_layout import get_journal_path
from agent_relay.engine.sessions._creation import create_session
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.open_request import OpenRequest, find_requested_root
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.engine.sessions.turns import TurnStart, find_turn_by_message_id
from agent_relay.session.fold import fold_events
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, write_entry
from agent_relay.store.session_journals import open_journal
from agent_relay.store.session_summaries import list_moved_at, was_moved

_log = logging.getLogger(__name__)
_ENDS_S = 5.0
"""Longest wait for the rest of a turn's end: the polite steps of a headless agent take no time."""


@contextlib.asynccontextmanager
async def hold_session(
    registry: SessionRegistry, request: OpenRequest, message: str = "", *, patience_s: float = _ENDS_S
) -> AsyncIterator[Host | TurnStart]:
    """Yield the requested session, or a new one; no other request gets in while it is held.

    If the turn for `message`, an id of the requester's, has begun, yields where it began instead, unless
    it was given up before an agent had a part in it. The rest of the end of the session's last turn is
    waited for, without keeping others from other sessions.
    """
    root = await asyncio.to_thread(find_requested_root, request.cwd)
    registry.offer(request.pack(), root=root, session=request.session)
    is_patient = True
    while True:
        async with registry.lock:
            known = await find_turn_by_message_id(registry, message, root=root, session=request.session)
            if known is not None and not known.is_given_up:
                yield known
                return
            if known is not None:
                request = replace(request, session=known.session, fresh=False)
            await registry.retire()
            host = await find_session(registry, request, root) or await create(registry, request, root)
            if not (is_patient and host.is_leaving):
                yield host
                return
        # The same one again, even if it was made just now.
        request = replace(request, session=host.session.id, fresh=False)
        is_patient = await _see_end(host, patience_s)


async def _see_end(host: Host, limit_s: float) -> bool:
    """Wait until the end of its last turn is complete, at most so long; return whether it is."""
    return await host.changes.wait_while(lambda: host.is_leaving, limit_s)


@contextlib.asynccontextmanager
async def enter_session(registry: SessionRegistry, request: OpenRequest) -> AsyncIterator[Host]:
    """Yield the session for a request without an id."""
    async with hold_session(registry, request) as found:
        match found:
            case Host():
                yield found
            case TurnStart():
                raise AssertionError("unreachable")


async def find_session(registry: SessionRegistry, request: OpenRequest, root: str) -> Host | None:
    """Return the requested session, else the one at work in `root`; `None` if there is none.

    Hold the lock, as for all that follows. Raises WrongUseError if the session named is unknown.
    """
    if request.session:
        await follow_move(registry, request.session, root)
        if request.session not in registry:
            await reopen(registry, request.session)
        return registry.get(request.session)
    await enter_released(registry, root)
    if request.fresh:
        return None
    for session_id in await asyncio.to_thread(list_moved_at, root, registry.services.folders.sessions):
        await follow_move(registry, session_id, root)
    here = [session for session in registry.at_work() if session.root == root]
    going = [one for one in here if one.state is not State.STOPPING and not (one.leg and one.leg.headless)]
    return registry.get(going[0].id) if going else None


async def create(registry: SessionRegistry, request: OpenRequest, root: str) -> Host:
    """Create a session, without a leg or with the one adopted from `request.source`, and return it."""
    async with registry.trees.enter(root):
        journal, past = await create_session(registry.services, request, root, registry.at_work())
        host = registry.add(journal)
    if past.bodies:
        await host.ask(past)
    return host


async def follow_move(registry: SessionRegistry, session_id: str, root: str) -> None:
    """Reopen the session in `root` if its folder was moved there; raise RelayError as `reopen` does."""
    folders = registry.services.folders
    if not await asyncio.to_thread(was_moved, root, folders.sessions, session_id):
        return
    _log.info("session-moved session=%s", session_id)
    before = await asyncio.to_thread(find_root, folders.sessions, session_id)
    await registry.let_go(session_id)
    await registry.trees.follow_move(before, root)
    await asyncio.to_thread(write_entry, folders.sessions, session_id, root=root, cwd=root)
    await reopen(registry, session_id)


async def reopen(registry: SessionRegistry, session_id: str) -> None:
    """Reopen the session, with or without a leg.

    Raises WrongUseError if it is unknown, RelayError if its journal is gone.
    """
    folders = registry.services.folders
    root = await asyncio.to_thread(find_root, folders.sessions, session_id)
    if not root:
        raise WrongUseError(f"there is no session {session_id[:26]}", hint="See: agent-relay sessions")
    path = get_journal_path(root, session_id)
    if not await asyncio.to_thread(os.path.exists, path):
        raise RelayError(f"the journal {path} is gone")
    await enter(registry, session_id, root)


async def take_over(registry: SessionRegistry, root: str) -> None:
    """Claim the tree, because a person says that its owner, which cannot be seen from here, is gone.

    Raises TreeOwnedError if that owner lives.
    """
    async with registry.lock, registry.trees.enter(root, by_hand=True):
        await enter_released(registry, root)


async def enter_released(registry: SessionRegistry, root: str) -> None:
    """Reopen the sessions in `root` that another owner had.

    Raises TreeOwnedError if that owner still has them.
    """
    for session_id, known in list(registry.owned_elsewhere.items()):
        if known.root != root:
            continue
        session = fold_events(await asyncio.to_thread(read_events, get_journal_path(root, session_id)))
        if session is None or session.state is State.ENDED:
            registry.owned_elsewhere.pop(session_id, None)
        else:
            await enter(registry, session_id, root)


async def enter(registry: SessionRegistry, session_id: str, root: str) -> None:
    """Reopen the session that is in `root`. Raise TreeOwnedError if the tree is somebody else's."""
    async with registry.trees.enter(root):
        journal = await asyncio.to_thread(open_journal, registry.services.folders, session_id, root)
        await registry.reopen(journal, root)
