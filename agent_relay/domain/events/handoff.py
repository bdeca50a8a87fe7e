"""The lines of a session's journal about its handoffs and packets."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class HandoffBegun:
    """A successor was chosen; `skipped` says why the others were not: `agent: reason`.

    `model` is the one it is to go on with if relay chose that, too; the agent may be the same then.
    `parent` is the handoff this one follows, `depth` how many there are of them with this one, 0 if
    an older version did not count. `rolls_back` is the failed handoff this one makes up for. The rest are its
    `Terms`.
    """

    name: ClassVar[str] = "handoff.begun"
    handoff: str
    from_leg: str
    from_agent: str
    to_agent: str
    reason: str
    why: str = ""
    focus: str = ""
    skipped: tuple[str, ...] = ()
    model: str = ""
    parent: str = ""
    depth: int = 0
    rolls_back: str = ""
    deliverables: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    priority: str = ""
    needs: tuple[str, ...] = ()
    rollback: str = ""
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PredecessorStopped:
    """The old leg's processes are gone and its PTY was read to the end."""

    name: ClassVar[str] = "handoff.stopped"
    handoff: str
    leg: str


@dataclass(frozen=True, slots=True)
class PacketPublished:
    """The packet is visible; paths are relative to the session's folder.

    `lacks` says what could not be read into it, or not understood, or not in time; empty for nothing.
    """

    name: ClassVar[str] = "packet.published"
    handoff: str
    packet: str
    sequence: int
    target: str
    json_path: str
    text_path: str
    fingerprint: str
    lacks: str = ""


@dataclass(frozen=True, slots=True)
class PacketSaved:
    """A packet of the session's state was published without a handoff; paths as above."""

    name: ClassVar[str] = "packet.saved"
    packet: str
    sequence: int
    target: str
    json_path: str
    text_path: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PacketDelivered:
    """The packet's text reached the successor."""

    name: ClassVar[str] = "handoff.delivered"
    handoff: str
    leg: str


@dataclass(frozen=True, slots=True)
class HandoffConfirmed:
    """The successor works on it: the handoff is done."""

    name: ClassVar[str] = "handoff.confirmed"
    handoff: str
    leg: str


@dataclass(frozen=True, slots=True)
class HandoffFailed:
    """The handoff stopped at `step`; what had been reached stays as it is."""

    name: ClassVar[str] = "handoff.failed"
    handoff: str
    step: str
    why: str


@dataclass(frozen=True, slots=True)
class HandoffCancelled:
    """A person cancelled the handoff at `step`; the session will rest, with its packet if it has one."""

    name: ClassVar[str] = "handoff.cancelled"
    handoff: str
    step: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class HandoffRetried:
    """A failed or cancelled handoff goes on from where it stopped: from its packet, if it has one."""

    name: ClassVar[str] = "handoff.retried"
    handoff: str


@dataclass(frozen=True, slots=True)
class HandoffClosed:
    """A person's verdict on what came of the handoff: completed or failed.

    `skipped` says why its rollback agent does not take over after a failure: `agent: reason`.
    """

    name: ClassVar[str] = "handoff.closed"
    handoff: str
    verdict: str
    note: str = ""
    skipped: tuple[str, ...] = ()
