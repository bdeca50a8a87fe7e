"""Lines shown on the terminals attached to a leg: relay's messages, a slow start, a delivery that waits.

What lasts less than ten seconds is not reported: it is over before anybody could have read it.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from datetime import tzinfo

from agent_relay.domain.session import Session
from agent_relay.domain.state import State
from agent_relay.engine.legs.live_leg import LiveLeg
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.session.handoff.status_bar import DeliveryStage
from agent_relay.session.views.messages import render_message, render_slow_start
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)


Tell = Callable[[str], Awaitable[None]]
Announce = Callable[[DeliveryStage], Awaitable[bool]]
"""Announces the stage of a delivery; returns whether the keys of the leg's terminals are held meanwhile."""
SILENT_S = 10.0
"""How long nothing is reported: what lasts less is over before anybody could have read it."""


async def wait_with_reports(
    watch: LegMonitor, is_so: Callable[[], bool], *, limit_s: float, tell: Tell
) -> bool:
    """Return whether `is_so` became true within `limit_s` seconds; after ten, report what prevents it."""
    if await watch.wait_until(is_so, limit_s=SILENT_S):
        return True
    await tell(describe_wait(watch))
    return await watch.wait_until(is_so, limit_s=limit_s - SILENT_S)


async def announce_nothing(_stage: DeliveryStage) -> bool:
    """Announce nothing; return that no keys are held."""
    return False


def describe_wait(watch: LegMonitor) -> str:
    """Return what the agent does instead of taking its packet."""
    match watch.state:
        case "asking":
            doing = "is asking something"
        case "starting":
            doing = "is still starting"
        case "busy":
            doing = "is busy with something else"
        case _ if watch.input == "typed":
            doing = "has something in its input line"
        case _:
            doing = "is slow to read"
    return f"{watch.leg.agent} {doing}, and has not been given its packet yet"


async def show_slow_start(
    watch: LegMonitor, session: Session, *, has_bar: Callable[[str], bool], after_s: float = SILENT_S
) -> None:
    """Show a line on the leg's terminals if its agent is not ready `after_s` seconds from now.

    None if the agent asks something meanwhile, if its screen does not show its state, or while a bar says
    that it starts.
    """
    leg = watch.leg
    if leg.headless or leg.was_ready or leg.was_busy or not watch.sees_prompt:
        return
    if await watch.wait_until(lambda: watch.gone.is_set() or watch.state != "starting", limit_s=after_s):
        return
    if watch.screen is None or has_bar(leg.id):
        return
    _log.info("slow-start leg=%s", leg.id)
    with contextlib.suppress(HolderError):
        await watch.holder.request("say", text=render_slow_start(session, leg.agent))


_LENGTH = 2000


async def show_message(live: LiveLeg | None, session: Session, zone: tzinfo) -> None:
    """Send the session's message to every terminal of the leg.

    A holder that is gone, or of an earlier version, has no terminal that could show it: `status` shows it
    then.
    """
    message = render_message(session, zone)
    if live is None or not message:
        return
    with contextlib.suppress(HolderError):
        kind = "rest" if session.state is State.RESTING and not session.is_held else ""
        await live.watch.holder.request("say", text=message[:_LENGTH], kind=kind)
