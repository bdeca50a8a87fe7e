"""Effects: what the state machine asks the host to do; its outcome comes back as an input."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Draft:
    """Have the leg's agent write a handoff document in a fork of its session. Nothing answers."""

    leg: str


@dataclass(frozen=True, slots=True)
class AwaitQuiet:
    """Come back with Quiet once the leg waits for a prompt, nobody types one, and no draft is being written.

    Nothing answers where that does not come to pass.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Type the agent's own command that makes its conversation shorter.

    Comes back with Spared where somebody had begun to type; else nothing answers.
    """

    leg: str


@dataclass(frozen=True, slots=True)
class CancelContinue:
    """Type the keys by which the leg's agent gives up its timer for `at`, while its screen shows that.

    Nothing answers: what its screen shows then does.
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
    """Write a limit into the ledger; `until` is `None` where the reset is unknown."""

    agent: str
    scope: str
    until: datetime | None
    evidence: str
    model: str = ""


@dataclass(frozen=True, slots=True)
class ShowMessage:
    """Terminals attached to the leg show what there is to say of the session now. Nothing answers."""

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
