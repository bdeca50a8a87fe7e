"""Keeps a finished leg's holder until the next leg lives; only its memory has the user's environment.

The environment never touches the disk, so a daemon killed while no agent lives would start the next one
without the user's keys. Holders exit when the next leg lives or the session has ended.
"""

import asyncio
import contextlib
import os
from dataclasses import replace
from datetime import timedelta

from agent_relay.domain.errors import RelayError
from agent_relay.domain.session import Leg, Session
from agent_relay.engine.legs.launch_environment import LaunchEnvironment, read_launch_environment
from agent_relay.engine.legs.shutdown import end_by_force, remove_folder
from agent_relay.engine.services import Services
from agent_relay.store.session_index import mark_ended
from agent_relay.terminal.holder_client import HolderConnection

UNREAD_RETENTION = timedelta(hours=1)
"""How long the output of a headless turn is kept for a follower that has not read it to its end."""


async def find_launch_environment(services: Services, session: Session) -> LaunchEnvironment | None:
    """Return the launch environment of the newest leg whose holder still answers; `None` if none does."""
    for leg in reversed(session.legs):
        with contextlib.suppress(RelayError):
            holder = await HolderConnection.open(_get_folder(services, leg))
            try:
                return await read_launch_environment(holder)
            finally:
                await holder.close()
    return None


async def release_legs(services: Services, session: Session) -> None:
    """End the holders of the session's finished legs, and remove their folders unless headless."""
    for leg in session.legs:
        if leg.is_over and await asyncio.to_thread(os.path.isdir, _get_folder(services, leg)):
            await _release(services, leg)
            if not leg.headless:
                await remove_folder(services, leg)


async def _release(services: Services, leg: Leg) -> None:
    try:
        holder = await HolderConnection.open(_get_folder(services, leg))
        try:
            await holder.leave()
        finally:
            await holder.close()
    except RelayError:
        await end_by_force(services, replace(leg, child_pid=0), leg.holder_pid)


async def forget_streams(services: Services, session: Session, *, since: str | None = None) -> None:
    """Remove the output of finished headless legs, which its followers have read.

    With `since`, only of the legs before that one; an empty name is before all of them.
    """
    for leg in session.legs:
        if since in {leg.id, ""}:
            return
        if (
            leg.headless
            and leg.is_over
            and await asyncio.to_thread(os.path.isdir, _get_folder(services, leg))
        ):
            await _release(services, leg)
            await remove_folder(services, leg)


async def note_ended(services: Services, session: Session) -> None:
    """Mark the session in the index as ended, with nothing of it left to tidy up.

    If the disk refuses, the next daemon finds that out again.
    """
    with contextlib.suppress(RelayError):
        await asyncio.to_thread(mark_ended, services.folders.sessions, session.id)


def _get_folder(services: Services, leg: Leg) -> str:
    return f"{services.folders.legs}/{leg.id}"
