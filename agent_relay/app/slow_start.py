"""An agent that shows no prompt for a while after its start: whoever looks at its screen is told."""

import contextlib
import logging
from collections.abc import Callable

from agent_relay.app.patience import SILENT_S
from agent_relay.app.watch import LegWatch
from agent_relay.domain.session import Session
from agent_relay.logic.wording import render_slow_start
from agent_relay.system.holder_client import HolderError

_log = logging.getLogger(__name__)


async def tell_slow_start(
    watch: LegWatch, session: Session, *, has_bar: Callable[[str], bool], after_s: float = SILENT_S
) -> None:
    """One line is on the leg's terminals if its agent is not ready `after_s` seconds from now.

    Nothing of an agent that asks something meanwhile, and of one whose screen says nothing of its state;
    nothing either while a bar says that it starts.
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
