"""What the shell says at its beginning: everything a newcomer needs, once; one line ever after."""

import os

from agent_relay.domain.errors import RelayError
from agent_relay.system.files import write_atomic

_FIRST = (
    "This is the relay shell: one agent works on what you type, and the next one goes on at a limit.",
    "Type a message and press Enter; type on while the agent works, and it is sent after that turn.",
    "/use AGENT hands over by hand, /attach opens the agent's own screen, /status says how things are.",
    "Ctrl-C stops a turn, Ctrl-D leaves; what works goes on, and /resume finds it again.",
    "/help lists the rest. This is said once.",
)


def greet(folder: str, agent: str) -> tuple[str, ...]:
    """The lines to begin with; `folder` remembers that the long ones were said."""
    line = f"agent-relay: {agent or 'no agent'} has the next message. /help lists the commands."
    mark = os.path.join(folder, "welcomed")
    if os.path.exists(mark):
        return (line,)
    try:
        write_atomic(mark, b"", durable=False)
    except RelayError:
        return (line,)
    return (*_FIRST, line)
