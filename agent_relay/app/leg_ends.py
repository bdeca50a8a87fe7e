"""The end of a leg's processes, and of what they left: nothing of it lives on unseen."""

import asyncio
import contextlib
import logging
import os
import signal

from agent_relay.app.ground import Ground
from agent_relay.domain.errors import RelayError
from agent_relay.domain.ids import LegId
from agent_relay.domain.session import Leg
from agent_relay.system import legs
from agent_relay.system.processes import end_session

_log = logging.getLogger(__name__)


async def is_held(ground: Ground, leg: Leg) -> bool:
    """Whether the leg's holder lives; where that cannot be told, it counts as living."""
    return await asyncio.to_thread(_is_held, legs.Leg(LegId(leg.id), f"{ground.folders.legs}/{leg.id}"))


def _is_held(place: legs.Leg) -> bool:
    if not os.path.isdir(place.folder):
        return False
    try:
        lock = legs.try_lock(place)
    except RelayError:
        return True
    if lock is not None:
        os.close(lock)
    return lock is None


async def end_by_force(ground: Ground, leg: Leg, holder_pid: int) -> None:
    """Neither the agent nor a holder that does not answer lives on."""
    if leg.child_pid:
        await asyncio.to_thread(end_session, leg.child_pid, leg.child_born)
    if holder_pid and await is_held(ground, leg):
        # While the lock is held its holder lives, so that its pid cannot have become another's.
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder_pid, signal.SIGKILL)


async def end_agent(leg: Leg) -> None:
    """No process of the leg's agent is left."""
    if leg.child_pid:
        left = await asyncio.to_thread(end_session, leg.child_pid, leg.child_born)
        if left:
            _log.warning("processes-left leg=%s count=%d", leg.id, len(left))


async def end_lost_leg(ground: Ground, leg: Leg) -> None:
    """No process of a leg without a holder is left, and, but for a headless leg's, its folder is gone."""
    await end_agent(leg)
    if not leg.headless:
        await remove_folder(ground, leg)


async def remove_folder(ground: Ground, leg: Leg) -> None:
    """The leg's folder is gone; where the disk refuses, the next daemon finds it again."""
    with contextlib.suppress(RelayError):
        place = legs.Leg(LegId(leg.id), f"{ground.folders.legs}/{leg.id}")
        await asyncio.to_thread(legs.remove_leg, place)
