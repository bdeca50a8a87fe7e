"""Effects: what the state machine asks the host to do; its outcome comes back as an input."""

from datetime import datetime

import msgspec


class Draft(msgspec.Struct, frozen=True):
    """Have the leg's agent write a handoff document in a fork of its session. No input answers."""

    leg: str


class DraftPacket(msgspec.Struct, frozen=True):
    """Publish a packet of the leg's present state for `agent`, ahead of a handoff. No input answers."""

    leg: str
    agent: str


class AwaitQuiet(msgspec.Struct, frozen=True):
    """Come back with LegQuiet once the leg waits for a prompt, nobody types one, and no draft is written.

    No input answers if that never happens.
    """

    leg: str


class Compact(msgspec.Struct, frozen=True):
    """Type the agent's own command that makes its conversation shorter.

    Answered by CompactSkipped if somebody had begun to type; else by no input.
    """

    leg: str


class TellContext(msgspec.Struct, frozen=True):
    """Leave word for the leg's agent of how full its context is; take back older word. No input answers.

    It reads that with the user's next prompt, or with the answer of one of its tools.
    """

    leg: str


class CancelContinue(msgspec.Struct, frozen=True):
    """Type the keys that cancel the agent's timer for `at`, while its screen shows that timer.

    No input answers directly: what the screen shows then does.
    """

    leg: str
    at: datetime


class StopLeg(msgspec.Struct, frozen=True):
    """End the leg's agent politely, then firmly; drain its PTY. Answered by LegGone."""

    leg: str


class PublishPacket(msgspec.Struct, frozen=True):
    """Gather facts and publish the packet of this handoff. Answered by Published or PublishFailed."""

    handoff: str


class SpawnLeg(msgspec.Struct, frozen=True):
    """Start the leg journalled under this id, or adopt its living holder. Answered by Spawned or LegGone."""

    leg: str


class DeliverPacket(msgspec.Struct, frozen=True):
    """Get the packet's text into the leg, once. Answered by Delivered or DeliverFailed."""

    handoff: str
    leg: str


class DeliverTask(msgspec.Struct, frozen=True):
    """Get the session's task into its first leg, once. Answered by TaskGiven, or not at all."""

    leg: str


class NoteRest(msgspec.Struct, frozen=True):
    """Write a limit into the ledger; `until` is `None` if the reset is unknown."""

    agent: str
    scope: str
    until: datetime | None
    evidence: str
    model: str = ""


class ShowMessage(msgspec.Struct, frozen=True):
    """Show the session's current message on terminals attached to the leg. No input answers."""

    leg: str


class WakeAt(msgspec.Struct, frozen=True):
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
    | DraftPacket
    | AwaitQuiet
    | Compact
    | TellContext
    | CancelContinue
)
