"""Turns that began before their asker was answered: found again by the id the asker gave them."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from agent_relay.app.ground import Ground
from agent_relay.app.index import find_journal, get_journal_path
from agent_relay.app.room import Room
from agent_relay.app.rooms import Rooms
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.event import Event
from agent_relay.domain.turn_event import TurnBegun
from agent_relay.domain.ulid import is_ulid, read_moment_ms
from agent_relay.logic.turn_lines import find_asked
from agent_relay.system.glances import list_sessions_at
from agent_relay.system.journal import read_events

_EARLIER_MS = 60_000
"""How much older than the message a journal may seem that has it: clocks are set, disks count coarsely."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Where a turn begins: its session, and the number of its first line.

    With `is_given_up` it is over, and no agent was asked.
    """

    session: str
    number: int
    is_given_up: bool = False


async def find_begun(ground: Ground, rooms: Rooms, message: str, *, root: str, session: str) -> Begun | None:
    """The turn asked for as `message`, an id of the asker's; `None` where none has begun, or it has no id.

    It is looked for in `session` and in those of the working tree `root` that changed since. Raises
    WrongUseError for what is no id.
    """
    if not message:
        return None
    if not is_ulid(message):
        raise WrongUseError("a message is named by a ULID")
    for room in rooms:
        found = find_asked(room.host.events, message)
        if found is not None:
            return Begun(room.session.id, *found)
    since_s = (read_moment_ms(message) - _EARLIER_MS) / 1000
    for session_id in await asyncio.to_thread(_list_candidates, root, session):
        if session_id not in rooms:
            found = find_asked(
                await asyncio.to_thread(_read_since, ground, root, session_id, since_s), message
            )
            if found is not None:
                return Begun(session_id, *found)
    return None


def get_newest(room: Room) -> Begun:
    """Where the newest turn of a session at work begins."""
    numbers = [line.number for line in room.host.events if isinstance(line.body, TurnBegun)]
    return Begun(room.session.id, numbers[-1])


def _list_candidates(root: str, session: str) -> list[str]:
    """The session asked for, and those whose folders stand in the working tree, newest first."""
    return sorted({*list_sessions_at(root), *([session] if session else [])}, reverse=True)


def _read_since(ground: Ground, root: str, session_id: str, since_s: float) -> Sequence[Event]:
    """The events of a journal; none where it did not change since, is not the user's or cannot be read."""
    with contextlib.suppress(OSError, RelayError):
        near = get_journal_path(root, session_id)
        if os.path.lexists(near) and os.stat(near).st_mtime < since_s:
            return ()
        path = find_journal(ground.folders, session_id)
        if path and os.stat(path).st_mtime >= since_s:
            return read_events(path)
    return ()
