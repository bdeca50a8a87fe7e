"""What relay has to say while an agent has the screen, shown on the terminals attached to its leg."""

import contextlib
from datetime import tzinfo

from agent_relay.app.legs import LiveLeg
from agent_relay.domain.session import Session, State
from agent_relay.logic.wording import render_message
from agent_relay.system.holder_client import HolderError

_LENGTH = 2000


async def say_message(live: LiveLeg | None, session: Session, zone: tzinfo) -> None:
    """The session's message is on the way to every terminal of the leg; nobody else misses it.

    A holder that is gone, or from before this was known, has no terminal that could show it: `status` does.
    """
    message = render_message(session, zone)
    if live is None or not message:
        return
    with contextlib.suppress(HolderError):
        kind = "rest" if session.state is State.RESTING and not session.is_held else ""
        await live.watch.holder.request("say", text=message[:_LENGTH], kind=kind)
