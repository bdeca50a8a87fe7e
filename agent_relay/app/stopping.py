"""Ending a leg: the adapter's polite steps first, a Unix signal nobody can refuse last."""

import asyncio
import logging
from collections.abc import Sequence

from agent_relay.app.watch import LegWatch
from agent_relay.domain.adapter import QuitStep
from agent_relay.domain.errors import RelayError
from agent_relay.system.holder_client import HolderError

_log = logging.getLogger(__name__)
_LAST = QuitStep(signal="SIGKILL", wait_s=5)


async def stop_leg(watch: LegWatch, steps: Sequence[QuitStep]) -> None:
    """The leg's agent has ended and its PTY was read to the end, or its holder is gone.

    Each step is taken and given its time; a step for one state is skipped in another. Raises RelayError
    where the agent survives even SIGKILL.
    """
    for quit_step in (*steps, _LAST):
        if watch.gone.is_set():
            return
        if quit_step.only_when and quit_step.only_when != watch.state:
            continue
        try:
            await _take(watch, quit_step)
        except HolderError as error:
            # A holder that no longer answers is noticed by its watch, which then ends the agent itself.
            _log.info("quit-step-refused leg=%s why=%s", watch.leg.id, error.why)
        try:
            async with asyncio.timeout(quit_step.wait_s):
                await watch.gone.wait()
        except TimeoutError:
            continue
        return
    raise RelayError(f"{watch.leg.agent} does not end, not even by SIGKILL")


async def dismiss_holder(watch: LegWatch) -> None:
    """The leg's holder does not outlive its agent for long, even where no daemon is there by then."""
    try:
        await watch.holder.leave_later()
    except HolderError as error:
        _log.info("not-dismissed leg=%s why=%s", watch.leg.id, error.why)


async def _take(watch: LegWatch, quit_step: QuitStep) -> None:
    if quit_step.keys:
        await watch.holder.type(quit_step.keys.encode())
    if quit_step.signal:
        await watch.holder.signal(quit_step.signal)
