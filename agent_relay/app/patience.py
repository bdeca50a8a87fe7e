"""Waiting for an agent that is to be given its packet, and telling people what is waited for."""

from collections.abc import Awaitable, Callable

from agent_relay.app.watch import LegWatch
from agent_relay.logic.bar import DeliveryStage

Tell = Callable[[str], Awaitable[None]]
Announce = Callable[[DeliveryStage], Awaitable[bool]]
"""Says what a delivery does from now on; whether the keys of the leg's terminals wait meanwhile."""
SILENT_S = 10.0
"""How long nothing is told: what lasts shorter is over before anybody could have read of it."""


async def wait_aloud(watch: LegWatch, is_so: Callable[[], bool], *, limit_s: float, tell: Tell) -> bool:
    """Whether `is_so` became true within `limit_s` seconds; what keeps it from that is told after ten."""
    if await watch.wait_until(is_so, limit_s=SILENT_S):
        return True
    await tell(describe_wait(watch))
    return await watch.wait_until(is_so, limit_s=limit_s - SILENT_S)


async def announce_nothing(_stage: DeliveryStage) -> bool:
    """Nobody is told, and nobody's keys wait."""
    return False


def describe_wait(watch: LegWatch) -> str:
    """What the agent does instead of taking its packet."""
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
