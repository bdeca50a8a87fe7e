"""End a leg: politely, else by a signal, and clean up after it; keep its holder until the next leg lives."""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Collection, Sequence
from datetime import timedelta

from agent_relay.domain.documents.adapter import QuitStep
from agent_relay.domain.errors import RelayError, UntrustedDataError
from agent_relay.domain.inputs import LegGone
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.text.plain import find_reason
from agent_relay.domain.values import LegId, replace
from agent_relay.engine.legs.leg_start import ERRORS_FILE
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.engine.services import LaunchEnvironment, Services, read_launch_environment
from agent_relay.session.ownership import may_use_pid
from agent_relay.store.session_index import mark_ended
from agent_relay.system.clock import read_boot_moment
from agent_relay.system.disk.files import read_end
from agent_relay.system.net.unix_sockets import connect
from agent_relay.system.processes import end_session, find_family, find_marked, find_parent, is_alive
from agent_relay.terminal import leg_folder as legs
from agent_relay.terminal.holder_client import HolderConnection, HolderError

_log = logging.getLogger(__name__)


_LISTENS_S = 1.0


async def is_held(services: Services, leg: Leg) -> bool:
    """Tell whether the leg's holder lives; if that cannot be found out, it counts as living."""
    place = _get_place(services, leg)
    return await asyncio.to_thread(lambda: _is_held(place) or _is_at_its_agent(services, leg))


def _is_held(place: legs.LegFolder) -> bool:
    if not os.path.isdir(place.folder):
        return False
    try:
        lock = legs.try_lock(place)
    except (RelayError, OSError):
        return True
    if lock is None:
        return True
    os.close(lock)
    # Somebody may have deleted the lock of one that lives: nobody listens at what a dead one left.
    try:
        connect(place.socket, timeout_s=_LISTENS_S).close()
    except (OSError, RelayError):
        return False
    return True


def _is_at_its_agent(services: Services, leg: Leg) -> bool:
    """Tell whether the holder's process still has its agent, even if the leg's folder is not found."""
    if not leg.child_pid or not can_use_pids(services, leg):
        return False
    return find_parent(leg.child_pid, leg.child_born) == leg.holder_pid


def can_use_pids(services: Services, leg: Leg) -> bool:
    """Tell whether the journal's pids of the leg are valid here and now: after a reboot they are not."""
    # The leg's start is told by the clock as it was before it was set or after, and so is the boot.
    booted_at = min(services.booted_at, read_boot_moment())
    return may_use_pid(leg.owner, services.owner, noted_at=leg.starting_at, booted_at=booted_at)


async def end_by_force(services: Services, leg: Leg, holder_pid: int) -> None:
    """End the agent, and a holder that does not answer."""
    await end_agent(services, leg)
    if holder_pid and can_use_pids(services, leg) and await is_held(services, leg):
        # While the lock is held its holder lives, so that its pid cannot have become another's.
        with contextlib.suppress(ProcessLookupError):
            os.kill(holder_pid, signal.SIGKILL)


async def end_agent(services: Services, leg: Leg, *, others: Collection[tuple[int, int]] = ()) -> None:
    """End every process of the leg's agent, and `others`, as (pid, born)."""
    if not leg.child_pid and not others:
        return
    if not can_use_pids(services, leg):
        _log.warning("pid-of-another-time-or-place leg=%s", leg.id)
        return
    left = await asyncio.to_thread(end_session, leg.child_pid, leg.child_born, others=others)
    if left:
        _log.warning("processes-left leg=%s count=%d", leg.id, len(left))


async def end_lost_leg(services: Services, leg: Leg) -> None:
    """End every process of a leg without a holder, and remove its folder unless it is headless."""
    place = _get_place(services, leg)
    await end_agent(services, leg, others=await asyncio.to_thread(_find_orphans, place))
    if not leg.headless:
        await remove_folder(services, leg)


def _find_orphans(place: legs.LegFolder) -> list[tuple[int, int]]:
    """Find what the leg's agent started and still lives, whoever its parent is, as (pid, born).

    If agent and holder were both killed, a shell in a Unix session of its own descends from neither. Left out
    are those that had left the agent while it lived, such as a database, and what they started.
    """
    left = [pid for pid, pid_born in legs.read_left(place) if is_alive(pid, pid_born)]
    spared = {pid for one in left for generation in find_family(one) for pid in generation}
    return [member for member in find_marked(LEG_VARIABLE, place.id) if member[0] not in spared]


async def remove_folder(services: Services, leg: Leg) -> None:
    """Remove the leg's folder; if the disk refuses, the next daemon finds it again."""
    with contextlib.suppress(RelayError):
        place = _get_place(services, leg)
        await asyncio.to_thread(legs.remove_leg, place)


_LAST = QuitStep(signal="SIGKILL", wait_s=5)


async def stop_leg(monitor: LegMonitor, steps: Sequence[QuitStep]) -> None:
    """End the leg's agent; wait until its PTY was read to the end, or its holder is gone.

    Each step is taken and given its time; a step for one state is skipped in another. Raises RelayError if
    the agent survives even SIGKILL.
    """
    for quit_step in (*steps, _LAST):
        if monitor.gone.is_set():
            return
        if quit_step.only_when and quit_step.only_when != monitor.state:
            continue
        try:
            await _take(monitor, quit_step)
        except HolderError as error:
            # A holder that no longer answers is noticed by its supervisor, which then ends the agent itself.
            _log.info("quit-step-refused leg=%s why=%s", monitor.leg.id, error.why)
        try:
            async with asyncio.timeout(quit_step.wait_s):
                await monitor.gone.wait()
        except TimeoutError:
            continue
        return
    raise RelayError(f"{monitor.leg.agent} does not end, not even by SIGKILL")


async def dismiss_holder(monitor: LegMonitor) -> None:
    """Have the leg's holder exit soon after its agent, even if no daemon runs by then."""
    try:
        await monitor.holder.leave_later()
    except HolderError as error:
        _log.info("not-dismissed leg=%s why=%s", monitor.leg.id, error.why)


async def _take(monitor: LegMonitor, quit_step: QuitStep) -> None:
    if quit_step.keys:
        await monitor.holder.type(quit_step.keys.encode())
    if quit_step.signal:
        await monitor.holder.signal(quit_step.signal)


_ERROR_BYTES = 1 << 14


def judge_ending(monitor: LegMonitor, ending: LegGone, folder: str, *, is_overdue: bool = False) -> LegGone:
    """Return the leg's end with what its stream said of its turn, or else why it ended.

    A leg that was `is_overdue` had reported that it was done before it was ended, whatever its end looks
    like.
    """
    if not monitor.leg.headless:
        return ending
    verdict = monitor.verdict
    ending = replace(ending, refused=verdict.refused)
    if is_overdue or (verdict.is_done and ending.status <= 0):
        return replace(ending, is_done=True)
    agent, reason = monitor.leg.agent, verdict.why or _read_why(folder)
    if verdict.is_idle:
        idle = f"{agent} ended its turn without doing anything"
        return replace(ending, why=f"{idle}: {reason}" if reason else idle)
    how = ending.why or f"{agent} ended with status {ending.status} before its turn was over"
    return replace(ending, why=reason or how)


def _read_why(folder: str) -> str:
    """Return the last thing a failed program wrote to its standard error; empty for nothing."""
    try:
        said = read_end(os.path.join(folder, ERRORS_FILE), limit_bytes=_ERROR_BYTES)
    except (OSError, UntrustedDataError):
        return ""
    return find_reason(said.decode("utf-8", "replace"))


UNREAD_RETENTION = timedelta(hours=1)
"""Longest time the output of a headless turn is kept for a follower that has not read it to its end."""


async def find_launch_environment(services: Services, session: Session) -> LaunchEnvironment | None:
    """Return the launch environment of the newest leg whose holder still answers; `None` if none does."""
    for leg in reversed(session.legs):
        with contextlib.suppress(RelayError):
            holder = await HolderConnection.open(_get_place(services, leg).folder)
            try:
                return await read_launch_environment(holder)
            finally:
                await holder.close()
    return None


async def release_legs(services: Services, session: Session) -> None:
    """End the holders of the session's finished legs, and remove their folders unless headless."""
    for leg in session.legs:
        if leg.is_over and await asyncio.to_thread(os.path.isdir, _get_place(services, leg).folder):
            if leg.headless:
                await _release(services, leg)
            else:
                await release_leg(services, leg)


async def release_leg(services: Services, leg: Leg) -> None:
    """End the holder of a finished leg, and remove its folder."""
    await _release(services, leg)
    await remove_folder(services, leg)


async def end_standby(services: Services, session: Session) -> None:
    """End the standby of a session that nobody is at work in any more; nothing of it is left."""
    if session.standby is None:
        return
    leg = session.standby.leg
    await end_agent(services, leg, others=await asyncio.to_thread(_find_orphans, _get_place(services, leg)))
    await release_leg(services, leg)


async def _release(services: Services, leg: Leg) -> None:
    try:
        holder = await HolderConnection.open(_get_place(services, leg).folder)
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
            and await asyncio.to_thread(os.path.isdir, _get_place(services, leg).folder)
        ):
            await _release(services, leg)
            await remove_folder(services, leg)


async def note_ended(services: Services, session: Session) -> None:
    """Mark the session in the index as ended, with nothing of it left to tidy up.

    If the disk refuses, the next daemon finds that out again.
    """
    with contextlib.suppress(RelayError):
        await asyncio.to_thread(mark_ended, services.folders.sessions, session.id)


def _get_place(services: Services, leg: Leg) -> legs.LegFolder:
    return legs.LegFolder(LegId(leg.id), f"{services.folders.legs}/{leg.id}")
