"""Waiting for a moment of the wall clock."""

import asyncio
from datetime import datetime

from agent_relay.system.clock import Clock

_LONGEST_SLEEP_S = 30.0


async def sleep_until(clock: Clock, at: datetime) -> None:
    """It is `at` by the wall clock, which a sleeping machine does not stop and a person may set."""
    while (left_s := (at - clock.now()).total_seconds()) > 0:  # noqa: ASYNC110 - nothing tells when a clock was set
        await asyncio.sleep(min(left_s, _LONGEST_SLEEP_S))
