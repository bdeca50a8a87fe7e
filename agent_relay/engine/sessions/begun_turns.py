"""Find where a turn began: the newest one, or the one begun for a message that is asked for again."""

import asyncio
import contextlib
import os
from collections.abc import Sequence

import msgspec

from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.events.session import Event
from agent_relay.domain.events.work import TurnBegun
from agent_relay.domain.names import get_journal_path, is_ulid, read_moment_ms
from agent_relay.engine.services import Services
from agent_relay.engine.sessions.host import Host
from agent_relay.engine.sessions.registry import SessionRegistry
from agent_relay.session.transitions import find_turn_by_message
from agent_relay.store.journal import read_events
from agent_relay.store.session_index import list_sessions_at
from agent_relay.store.session_journals import find_journal

_EARLIER_MS = 60_000
"""Most milliseconds a journal may seem older than its message: clocks are set, disks count coarsely."""


class TurnStart(msgspec.Struct, frozen=True):
    """Beginning of a turn: its session, and the number of its first line.

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
