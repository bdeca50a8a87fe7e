"""Turns that began before their asker was answered: found again by the id the asker gave them."""

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass

from agent_relay.app.ground import Ground
from agent_relay.app.index import get_journal_path, read_index
from agent_relay.app.room import Room
from agent_relay.app.rooms import Rooms
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.event import Event
from agent_relay.domain.turn_event import TurnBegun
from agent_relay.domain.ulid import is_ulid, read_moment_ms
from agent_relay.logic.turn_lines import find_asked
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
    index = await asyncio.to_thread(read_index, ground.folders.sessions)
    since_s = (read_moment_ms(message) - _EARLIER_MS) / 1000
    for session_id, place in reversed(index.items()):
        if session_id in rooms:
            events: Sequence[Event] = rooms.get(session_id).host.events
        elif session_id == session or place == root:
            events = await asyncio.to_thread(_read_since, get_journal_path(place, session_id), since_s)
        else:
            continue
        found = find_asked(events, message)
        if found is not None:
            return Begun(session_id, *found)
    return None


def get_newest(room: Room) -> Begun:
    """Where the newest turn of a session at work begins."""
    numbers = [line.number for line in room.host.events if isinstance(line.body, TurnBegun)]
    return Begun(room.session.id, numbers[-1])


def _read_since(path: str, since_s: float) -> Sequence[Event]:
    """The events of a journal, none where it did not change since then or cannot be read."""
    with contextlib.suppress(OSError, RelayError):
        if os.stat(path).st_mtime >= since_s:
            return read_events(path)
    return ()
