"""Getting text into a ready agent: pasted as one piece, submitted once, never over what somebody types."""

import asyncio
import logging
from collections.abc import Mapping

from agent_relay.app.watch import LegWatch
from agent_relay.domain.adapter import Deliver
from agent_relay.domain.errors import RelayError

_log = logging.getLogger(__name__)
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_READY_S = 600.0
"""How long a packet waits for the agent's prompt: a person may have to answer a trust question first."""
_WORKING_S = 12.0
"""How long an agent may take from a submitted prompt to its first sign of work; measured: 0.1-3 s."""
_TRIES = 3


async def deliver_text(watch: LegWatch, deliver: Deliver, *, packet: str, prompt: str) -> None:
    """`packet` (may be empty) and `prompt` were submitted as one turn, and the agent works on it.

    `packet` is pasted with the adapter's escapes, `prompt` as it is. A leg that was given a prompt before
    is left alone: what a crashed daemon delivered is not delivered twice. Raises RelayError where the
    agent never becomes ready, somebody keeps typing, or it shows no sign of work.
    """
    await watch.settle_evidence()
    if watch.prompted:
        watch.say_working()
        return
    await _wait_for_room(watch)
    text = "\n\n".join(part for part in (_escape(packet, deliver.packet_escapes), prompt) if part)
    await watch.holder.type(_PASTE_BEGIN + text.encode() + _PASTE_END)
    for _ in range(_TRIES):
        await asyncio.sleep(deliver.submit_delay_ms / 1000)
        await watch.holder.type(deliver.submit.encode())
        if await watch.wait_until(watch.is_working, limit_s=_WORKING_S):
            watch.say_working()
            return
        if watch.gone.is_set():
            raise RelayError(f"{watch.leg.agent} ended while it was given its packet")
        _log.info("submit-again leg=%s", watch.leg.id)
    raise RelayError(f"{watch.leg.agent} did not begin to work on its packet")


async def _wait_for_room(watch: LegWatch) -> None:
    """The agent waits for a prompt and nobody is in the middle of typing one."""

    def has_room() -> bool:
        return watch.gone.is_set() or (watch.state == "ready" and watch.input != "typed")

    if not await watch.wait_until(has_room, limit_s=_READY_S):
        raise RelayError(f"{watch.leg.agent} was not ready for its packet within {_READY_S:.0f} s")
    if watch.gone.is_set():
        raise RelayError(f"{watch.leg.agent} ended before it was given its packet")


def _escape(packet: str, escapes: Mapping[str, str]) -> str:
    for mark, escaped in escapes.items():
        packet = packet.replace(mark, escaped)
    return packet
