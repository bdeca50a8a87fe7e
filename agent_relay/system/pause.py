"""Named points at which this process freezes when told to: how crashes between two steps are rehearsed."""

import os
import signal

VARIABLE = "AGENT_RELAY_PAUSE_AT"
"""Names the point: `before handoff.begun`, `after StopLeg`. Agents never see it: it is one of ours."""


def pause_at(point: str) -> None:
    """The process stops itself (SIGSTOP) the first time it comes to the point named."""
    if os.environ.get(VARIABLE) == point:
        del os.environ[VARIABLE]
        os.kill(os.getpid(), signal.SIGSTOP)
