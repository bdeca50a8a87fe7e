"""Keeps a finished leg's holder until the next leg lives; only its memory has the user's environment.

The environment never touches the disk, so a daemon killed while no agent lives would start the next one
without the user's keys. Holders leave when the next leg lives or the session has ended.
"""

import asyncio
import contextlib
import os
from dataclasses import replace
from datetime import timedelta

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg, Session
from agent_relay.engine.legs.live_leg import LaunchEnvironment, read_launch_environment
from agent_relay.engine.legs.shutdown import end_by_force, remove_folder
from agent_relay.engine.services import Services
from agent_relay.store.session_index import mark_ended
from agent_relay.terminal.holder_client import HolderConnection

UNREAD_RETENTION = timedelta(hours=1)
"""How long what a headless turn said is kept for somebody who has not read it to its end."""


async def find_launch_environment(ground: Services, session: Session) -> LaunchEnvironment | None:
    """What the newest leg took along whose holder still answers; `None` where none does."""
    for leg in reversed(session.legs):
        with contextlib.suppress(RelayError):
            holder = await HolderConnection.open(_get_folder(ground, leg))
            try:
                return await read_launch_environment(holder)
            finally:
                await holder.close()
    return None


async def release_legs(ground: Services, session: Session) -> None:
    """No leg of the session that is over has a holder any more, and but for a headless one's no folder."""
    for leg in session.legs:
        if leg.is_over and await asyncio.to_thread(os.path.isdir, _get_folder(ground, leg)):
            await _release(ground, leg)
            if not leg.headless:
                await remove_folder(ground, leg)


async def _release(ground: Services, leg: Leg) -> None:
    try:
        holder = await HolderConnection.open(_get_folder(ground, leg))
        try:
            await holder.leave()
        finally:
            await holder.close()
    except RelayError:
        await end_by_force(ground, replace(leg, child_pid=0), leg.holder_pid)


async def forget_streams(ground: Services, session: Session, *, since: str | None = None) -> None:
    """What headless legs that are over said is gone: who followed them has read it.

    With `since`, only of the legs before that one; an empty name is before all of them.
    """
    for leg in session.legs:
        if since in {leg.id, ""}:
            return
        if leg.headless and leg.is_over and await asyncio.to_thread(os.path.isdir, _get_folder(ground, leg)):
            await _release(ground, leg)
            await remove_folder(ground, leg)


async def note_ended(ground: Services, session: Session) -> None:
    """The index says that the session has ended and that nothing of it is left to be tidied up.

    Where the disk refuses, the next daemon finds that out again.
    """
    with contextlib.suppress(RelayError):
        await asyncio.to_thread(mark_ended, ground.folders.sessions, session.id)


def _get_folder(ground: Services, leg: Leg) -> str:
    return f"{ground.folders.legs}/{leg.id}"
