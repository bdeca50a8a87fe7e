"""What the shell prints when it opens: an introduction the first time, one line after that."""

import os

from agent_relay.domain.errors import RelayError
from agent_relay.system.disk.files import write_atomic

_FIRST = (
    "This is the relay shell: one agent works, and the next goes on at its limit.",
    "Type a message and Enter; what you type while it works is sent after its turn.",
    "/use AGENT hands over, /attach opens its own screen, /status says how it goes.",
    "Ctrl-C stops a turn, Ctrl-D leaves; what works goes on: /resume finds it again.",
    "/help lists the rest. These lines are shown once.",
)

NO_AGENT = "Install one of those /agents lists and say /use AGENT; to try it out: /use demo"
"""The hint if no agent of the order is installed."""


def greet(folder: str, agent: str) -> tuple[str, ...]:
    """Return the lines to begin with; a file in `folder` records that the introduction was shown."""
    known = f"{agent} has the next message" if agent else f"no agent is installed here. {NO_AGENT}"
    line = f"agent-relay: {known}. /help lists the commands."
    mark = os.path.join(folder, "welcomed")
    if os.path.exists(mark):
        return (line,)
    try:
        write_atomic(mark, b"", durable=False)
    except RelayError:
        return (line,)
    return (*_FIRST, line)
