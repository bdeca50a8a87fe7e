"""Effects: what the state machine asks the host to do; its outcome comes back as an input."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Draft:
    """Have the leg's agent write a handoff document in a fork of its session. No input answers."""

    leg: str


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Come back with LegQuiet once the leg waits for a prompt, nobody types one, and no draft is written.

    No input answers if that never happens.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Type the agent's own command that makes its conversation shorter.

    Answered by CompactSkipped if somebody had begun to type; else by no input.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class CancelContinue:
    """Type the keys that cancel the agent's timer for `at`, while its screen shows that timer.

    No input answers directly: what the screen shows then does.
    """

    leg: str
    at: datetime


@dataclass(frozen=True, slots=True)
class StopLeg:
    """End the leg's agent politely, then firmly; drain its PTY. Answered by LegGone."""

    leg: str


@dataclass(frozen=True, slots=True)
class PublishPacket:
    """Gather facts and publish the packet of this handoff. Answered by Published or PublishFailed."""

    handoff: str


@dataclass(frozen=True, slots=True)
class SpawnLeg:
    """Start the leg journalled under this id, or adopt its living holder. Answered by Spawned or LegGone."""

    leg: str


@dataclass(frozen=True, slots=True)
class DeliverPacket:
    """Get the packet's text into the leg, once. Answered by Delivered or DeliverFailed."""

    handoff: str
    leg: str


@dataclass(frozen=True, slots=True)
class DeliverTask:
    """Get the session's task into its first leg, once. Answered by TaskGiven, or not at all."""

    leg: str


@dataclass(frozen=True, slots=True)
class NoteRest:
    """Write a limit into the ledger; `until` is `None` if the reset is unknown."""

    agent: str
    scope: str
    until: datetime | None
    evidence: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Show the session's current message on terminals attached to the leg. No input answers."""

    leg: str


@dataclass(frozen=True, slots=True)
class WakeAt:
    """Come back with ResetPassed at this moment."""

    at: datetime


Effect = (
    StopLeg
    | PublishPacket
    | SpawnLeg
    | DeliverPacket
    | DeliverTask
    | NoteRest
    | ShowMessage
    | WakeAt
    | Draft
    | AwaitQuiet
    | Compact
    | CancelContinue
)
