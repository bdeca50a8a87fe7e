"""The conditions a session can be in.

A module of its own, because metrics needs no more of a session and starts faster without it.
"""

from enum import StrEnum


class State(StrEnum):
    """A session's one condition."""

    STARTING = "starting"
    READY = "ready"
    BUSY = "busy"
    ASKING = "asking"
    LIMITED = "limited"
    HANDING_OFF = "handing-off"
    RESTING = "resting"
    STOPPING = "stopping"
    ENDED = "ended"


LIVE = frozenset({State.STARTING, State.READY, State.BUSY, State.ASKING})
"""The states in which a leg is in charge."""
