"""Getting text into a ready agent: pasted as one piece, submitted once, never over what somebody types."""

import asyncio
import logging
from collections.abc import Mapping

from agent_relay.app.watch import LegWatch
from agent_relay.domain.adapter import Deliver
from agent_relay.domain.errors import RelayError
from agent_relay.system.holder_client import HolderError

_log = logging.getLogger(__name__)
_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_READY_S = 600.0
"""How long a packet waits for the agent's prompt: a person may have to answer a trust question first."""
_SHOWN_S = 5.0
"""How long a paste may take to appear in the agent's input line; a return sent before it is swallowed:
measured on two agents whose first prompt had just been painted."""
_WORKING_S = 30.0
"""How long an agent may take from a submitted prompt to its first sign of work; measured: 0.1-3 s."""
_AGAIN_S = 1.5
"""When a prompt that still stands in the input line is submitted again."""
_TYPING_S = 0.5
_REFUSALS = 3
_PASTES = 3


async def deliver_text(watch: LegWatch, deliver: Deliver, *, packet: str, prompt: str) -> None:
    """`packet` (may be empty) and `prompt` were submitted as one turn, and the agent works on it.

    `packet` is pasted with the adapter's escapes, `prompt` as it is. A leg that was given a prompt before
    is left alone: what a crashed daemon delivered is not delivered twice. Raises RelayError where the
    agent never becomes ready, somebody keeps typing, or it shows no sign of work.
    """
    await watch.settle_evidence()
    if not watch.prompted:
        text = "\n\n".join(part for part in (_escape(packet, deliver.packet_escapes), prompt) if part)
        for _ in range(_PASTES):
            await _paste(watch, text)
            if await _is_taken(watch):
                break
            _log.info("paste-again leg=%s", watch.leg.id)
        await asyncio.sleep(deliver.submit_delay_ms / 1000)
        await _submit(watch, deliver.submit)
    watch.say_working()


async def type_line(watch: LegWatch, deliver: Deliver, line: str) -> None:
    """`line` was typed and submitted as one of the agent's own commands; nothing, where somebody types.

    Keys pressed meanwhile come after it. Raises HolderError where somebody is in the middle of a line, or
    the holder is gone.
    """
    await watch.holder.type(line.encode(), unless_typed=True, goes_on=True)
    await asyncio.sleep(deliver.submit_delay_ms / 1000)
    await watch.holder.type(deliver.submit.encode())


async def _paste(watch: LegWatch, text: str) -> None:
    """The text stands in the input line of an agent that waited for a prompt, while nobody was typing one."""

    def has_room() -> bool:
        return watch.gone.is_set() or (watch.state == "ready" and watch.input != "typed")

    deadline, refusals = asyncio.get_running_loop().time() + _READY_S, 0
    while (left_s := deadline - asyncio.get_running_loop().time()) > 0:
        if not await watch.wait_until(has_room, limit_s=left_s):
            break
        if watch.input == "hidden" and watch.sees_input:
            # A window title says ready before the prompt is painted, or a question in its place.
            await watch.wait_until(
                lambda: watch.gone.is_set() or watch.state != "ready" or watch.input != "hidden",
                limit_s=_SHOWN_S,
            )
            if not has_room():
                continue
        if watch.gone.is_set():
            raise RelayError(f"{watch.leg.agent} ended before it was given its packet")
        try:
            # A key that answered a question without a return is counted as typed for ever: after a while
            # an input line that is seen to be empty is believed.
            seen_empty = refusals >= _REFUSALS and watch.input == "empty"
            await watch.holder.type(_PASTE_BEGIN + text.encode() + _PASTE_END, unless_typed=not seen_empty)
        except HolderError as error:
            if error.why != "typed":
                raise
            refusals += 1
            await asyncio.sleep(_TYPING_S)
            await watch.settle_evidence()
        else:
            return
    raise RelayError(f"{watch.leg.agent} was not ready for its packet within {_READY_S:.0f} s")


async def _is_taken(watch: LegWatch) -> bool:
    """Whether the paste stands in the input line, as far as that can be seen.

    A question that came up over it takes it along, and so does an agent that starts itself again.
    """

    def is_shown() -> bool:
        return watch.is_working() or watch.input == "typed"

    await watch.wait_until(lambda: is_shown() or watch.state == "asking", limit_s=_SHOWN_S)
    if watch.state == "asking":
        await watch.wait_until(lambda: is_shown() or watch.state == "ready", limit_s=_READY_S)
        await watch.wait_until(is_shown, limit_s=_SHOWN_S)
    return is_shown() or watch.input != "empty" or watch.state != "ready"


async def _submit(watch: LegWatch, submit: str) -> None:
    """The agent works on what stands in its input line.

    A second return is sent only where the first visibly did nothing: anywhere else it could say yes to
    a question.
    """
    if not await watch.wait_until(lambda: watch.is_working() or watch.state != "asking", limit_s=_READY_S):
        raise RelayError(
            f"{watch.leg.agent} was asking for {_READY_S:.0f} s and could not be given its packet"
        )
    deadline = asyncio.get_running_loop().time() + _WORKING_S
    if not watch.is_working():
        await watch.holder.type(submit.encode())
    while asyncio.get_running_loop().time() < deadline:
        if await watch.wait_until(watch.is_working, limit_s=_AGAIN_S):
            if watch.gone.is_set():
                raise RelayError(f"{watch.leg.agent} ended while it was given its packet")
            return
        if watch.state == "ready" and watch.input == "typed":
            _log.info("submit-again leg=%s", watch.leg.id)
            await watch.holder.type(submit.encode())
    raise RelayError(f"{watch.leg.agent} did not begin to work on its packet")


def _escape(packet: str, escapes: Mapping[str, str]) -> str:
    for mark, escaped in escapes.items():
        packet = packet.replace(mark, escaped)
    return packet
