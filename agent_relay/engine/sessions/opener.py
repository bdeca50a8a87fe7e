"""Find, reopen or create a session, one request at a time; begin a headless turn or find it by message id."""

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.inputs import TurnAsked
from agent_relay.domain.names import get_journal_path, is_ulid, read_moment_ms
from agent_relay.domain.state import State
from agent_relay.engine.legs.launch_environment import LaunchEnvironment
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.creation import OpenRequest, create_session, find_requested_root
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.session.fold import fold_events
from agent_relay.session.transitions import find_turn_by_message
from agent_relay.session.turns.lifecycle import check_free
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import find_root, list_moved_at, list_sessions_at, was_moved, write_entry
from agent_relay.store.session_journals import find_journal, open_journal

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
    registry: SessionRegistry, message: str, *, root: str, session: str
) -> TurnStart | None:
    """Return the turn begun for `message`, an id of the requester's; `None` if none has, or it is empty.

    It is looked for in the sessions at work, in `session`, and in those of the working tree `root` that
    changed since the id was made. Raises WrongUseError for what is no id.
    """
    if not message:
        return None
    if not is_ulid(message):
        raise WrongUseError("a message is named by a ULID")
    for host in registry:
        found = find_turn_by_message(host.events, message)
        if found is not None:
            return TurnStart(host.session.id, *found)
    since_s = (read_moment_ms(message) - _EARLIER_MS) / 1000
    for session_id in await asyncio.to_thread(_list_candidates, root, session):
        if session_id not in registry:
            found = find_turn_by_message(
                await asyncio.to_thread(_read_since, registry.services, root, session_id, since_s), message
            )
            if found is not None:
                return TurnStart(session_id, *found)
    return None


def get_newest(host: Host) -> TurnStart:
    """Return where the newest turn of a session at work begins."""
    numbers = [line.number for line in host.events if isinstance(line.body, TurnBegun)]
    return TurnStart(host.session.id, numbers[-1])


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


async def take_turn(host: Host, launch_environment: LaunchEnvironment, asked: TurnAsked) -> TurnStart:
    """Begin the turn and return where; its legs get the launch environment and its prompt as it was asked.

    Raises WrongUseError if something else is under way: what that is still to be given stays the same.
    """
    check_free(host.session)
    host.runner.take(launch_environment, asked.prompt)
    await host.ask(asked)
    host.followers.begin()
    return get_newest(host)


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
