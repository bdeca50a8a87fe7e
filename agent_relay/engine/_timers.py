"""Timers: sleep until a moment of the wall clock, and cancel an agent's own timer.

An agent's timer is cancelled only while its screen is known to show one and nobody types.
"""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.engine.legs.monitor import LegMonitor
from agent_relay.system.clock import Clock
from agent_relay.terminal.holder_client import HolderError

_log = logging.getLogger(__name__)


_LONGEST_SLEEP_S = 30.0


async def sleep_until(clock: Clock, at: datetime) -> None:
    """Sleep until `at` by the wall clock, which runs on in a sleeping machine and which a person may set."""
    while (left_s := (at - clock.now()).total_seconds()) > 0:  # noqa: ASYNC110 - nothing tells when a clock was set
        await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))


_KEYS_S = 5.0
"""Seconds without a key press after which nobody counts as typing."""
_SHOWN_S = 3.0
"""How long an agent may take to show that its timer is cancelled."""
_FIRST_LOOK_S = 0.5
_LONGEST_LOOK_S = 10.0


class AgentTimers:
    """Cancels the timers of one session's agents."""

    def __init__(self, clock: Clock, live: Mapping[str, LegMonitor]) -> None:
        self._clock = clock
        self._live = live
        self._under_way: set[str] = set()

    async def cancel(self, leg_id: str, at: datetime) -> None:
        """Cancel the agent's timer before `at`, unless someone is typing.

        The keys mean something else on any other screen: they are pressed only if the countdown was just
        seen. Raises RelayError if its adapter has no such keys.
        """
        live = self._live.get(leg_id)
        if live is None or leg_id in self._under_way:
            return
        keys = live.cancel_keys
        if not keys:
            agent = live.leg.agent
            raise RelayError(
                f"{agent} will continue by itself and relay cannot cancel that;"
                f" cancel it on {agent}'s own screen"
            )
        self._under_way.add(leg_id)
        try:
            await self._cancel(live, keys, at)
        finally:
            self._under_way.discard(leg_id)

    async def _cancel(self, monitor: LegMonitor, keys: str, at: datetime) -> None:
        pause_s = _FIRST_LOOK_S
        while not monitor.gone.is_set() and self._clock.now() < at:
            await monitor.settle_evidence()
            if monitor.continues_at is None:
                return
            # The countdown stands under an empty line; the same key would interrupt a turn.
            if monitor.state == "ready" and not await is_typing(monitor) and await _press(monitor, keys):
                _log.info("timer-cancelled leg=%s", monitor.leg.id)
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_LOOK_S)


async def _press(monitor: LegMonitor, keys: str) -> bool:
    """Press the keys; return whether the agent shows that its timer is cancelled, or is gone.

    `False` also if someone is typing: no key is pressed then.
    """
    try:
        await monitor.holder.type(keys.encode(), unless_typed=True)
    except HolderError as error:
        if error.why != "typed":
            raise
        return False
    return await monitor.wait_until(
        lambda: monitor.gone.is_set() or monitor.continues_at is None, limit_s=_SHOWN_S
    )


async def is_typing(monitor: LegMonitor) -> bool:
    """Tell whether somebody types at the leg's terminals, or left text in its input line."""
    status = await monitor.holder.request("status")
    age_s = status.get("key_age_s")
    is_pressing = status.get("typed") != 0 or (isinstance(age_s, int | float) and age_s < _KEYS_S)
    return is_pressing or monitor.input == "typed"
