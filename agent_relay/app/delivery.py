"""Getting text into a ready agent: pasted as one piece, submitted once, never over what somebody types."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Literal

from agent_relay.app.patience import Tell, describe_wait, wait_aloud
from agent_relay.app.submission import Submission
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
_READ_S = 25.0
"""How much longer an agent may take that shows neither the paste nor anything that took it along."""
_TYPING_S = 0.5
_REFUSALS = 3
_TOLD_REFUSALS = 20
_PASTES = 3

_Shown = Literal["shown", "asked", "lost"]


async def deliver_text(watch: LegWatch, deliver: Deliver, *, packet: str, prompt: str, tell: Tell) -> None:
    """`packet` (may be empty) and `prompt` were submitted as one turn, and the agent works on it.

    `packet` is pasted with the adapter's escapes, `prompt` as it is; `tell` hears what keeps them waiting.
    A leg that was given a prompt before is left alone: what a crashed daemon delivered is not delivered
    twice. Raises RelayError where the agent never becomes ready, somebody keeps typing, or it shows no sign
    of work.
    """
    await watch.settle_evidence()
    if not watch.prompted:
        text = "\n\n".join(part for part in (_escape(packet, deliver.packet_escapes), prompt) if part)
        for _ in range(_PASTES):
            is_counted = await _paste(watch, text, tell)
            shown = await _find_shown(watch, tell)
            if shown != "lost":
                break
            _log.warning("paste-again leg=%s", watch.leg.id)
        await asyncio.sleep(deliver.submit_delay_ms / 1000)
        is_counted = is_counted and shown != "asked"
        await Submission(watch, deliver.submit, is_counted=is_counted, tell=tell).run()
    watch.say_working()


async def type_line(watch: LegWatch, deliver: Deliver, line: str) -> None:
    """`line` was typed and submitted as one of the agent's own commands; nothing, where somebody types.

    Keys pressed meanwhile come after it. Raises HolderError where somebody is in the middle of a line, or
    the holder is gone.
    """
    await watch.holder.type(line.encode(), unless_typed=True, goes_on=True)
    await asyncio.sleep(deliver.submit_delay_ms / 1000)
    await watch.holder.type(deliver.submit.encode())


async def _paste(watch: LegWatch, text: str, tell: Tell) -> bool:
    """The text was pasted for an agent that waited for a prompt, while nobody was typing one.

    `False` where keys are counted as typed all the same, of which nothing is seen.
    """

    def has_room() -> bool:
        return watch.gone.is_set() or (watch.state == "ready" and watch.input != "typed")

    deadline, refusals = asyncio.get_running_loop().time() + _READY_S, 0
    while (left_s := deadline - asyncio.get_running_loop().time()) > 0:
        if not await wait_aloud(watch, has_room, limit_s=left_s, tell=tell):
            break
        await _see_prompt(watch)
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
            if refusals == _TOLD_REFUSALS:
                await tell(describe_wait(watch))
            await asyncio.sleep(_TYPING_S)
            await watch.settle_evidence()
        else:
            return not seen_empty
    raise RelayError(f"{watch.leg.agent} was not ready for its packet within {_READY_S:.0f} s")


async def _see_prompt(watch: LegWatch) -> None:
    """The prompt of a ready agent is painted: a window title says ready before it is, or a question is."""
    if watch.input == "hidden" and watch.sees_input:
        await watch.wait_until(
            lambda: watch.gone.is_set() or watch.state != "ready" or watch.input != "hidden",
            limit_s=_SHOWN_S,
        )


async def _find_shown(watch: LegWatch, tell: Tell) -> _Shown:
    """What became of the paste, as far as that can be seen.

    A question that came up over it takes it along, and so does an agent that starts itself again. An agent
    that is slow has not read it yet: pasted again, it would stand there twice.
    """

    def is_shown() -> bool:
        return watch.gone.is_set() or watch.prompted or watch.input == "typed"

    def is_lost() -> bool:
        return not is_shown() and watch.input == "empty" and watch.state == "ready"

    await watch.wait_until(lambda: is_shown() or watch.state == "asking", limit_s=_SHOWN_S)
    is_asked = watch.state == "asking"
    if is_asked or (watch.state != "ready" and not is_shown()):
        await wait_aloud(watch, lambda: is_shown() or watch.state == "ready", limit_s=_READY_S, tell=tell)
        await watch.wait_until(is_shown, limit_s=_SHOWN_S)
    if is_asked:
        return "lost" if is_lost() else "asked"
    if is_lost():
        _log.info("paste-unseen leg=%s", watch.leg.id)
        await wait_aloud(watch, lambda: is_shown() or watch.state != "ready", limit_s=_READ_S, tell=tell)
    return "lost" if is_lost() else "shown"


def _escape(packet: str, escapes: Mapping[str, str]) -> str:
    for mark, escaped in escapes.items():
        packet = packet.replace(mark, escaped)
    return packet
