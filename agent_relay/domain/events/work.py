"""Define the lines of a session's journal about handoffs, headless turns, contexts and budgets."""

from typing import ClassVar

import msgspec


class LegEvent(msgspec.Struct, frozen=True):
    """The data of events about a leg that say no more than which."""

    leg: str


class HandoffLegEvent(msgspec.Struct, frozen=True):
    """The data of events about a handoff's step on one of its two legs."""

    handoff: str
    leg: str


class ReasonEvent(msgspec.Struct, frozen=True):
    """The data of events about the session that say no more than why."""

    why: str = ""


class HandoffBegun(msgspec.Struct, frozen=True):
    """A successor was chosen; `skipped` says why the others were not: `agent: reason`.

    `model` is the one it is to go on with if relay chose that, too; the agent may be the same then.
    `parent` is the handoff this one follows, `depth` how many there are of them with this one, 0 if
    an older version did not count. `rolls_back` is the failed handoff this one makes up for. The rest are its
    `Terms`, whether its successor was to write a `digest` whatever the configuration says, and the `Asker`.
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
    digest: bool = False
    checks: tuple[str, ...] = ()
    proposed_checks: tuple[str, ...] = ()
    user: str = ""
    via: str = ""


class PredecessorStopped(HandoffLegEvent, frozen=True):
    """The old leg's processes are gone and its PTY was read to the end."""

    name: ClassVar[str] = "handoff.stopped"


class DigestBegun(msgspec.Struct, frozen=True):
    """The successor's program is about to write a handoff document from a digest, before its first turn.

    It is asked once for each handoff: a document that never came is not requested again.
    """

    name: ClassVar[str] = "digest.begun"
    handoff: str
    agent: str


class DigestEnded(msgspec.Struct, frozen=True):
    """The end of a digest: `outcome` is written, empty, failed, cancelled or nothing, `why` the failure.

    The tokens are those of the request, as far as its agent reports them; they count as relay's own.
    """

    name: ClassVar[str] = "digest.ended"
    handoff: str
    agent: str
    outcome: str
    why: str = ""
    model: str = ""
    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class PacketPublished(msgspec.Struct, frozen=True):
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


class PacketSaved(msgspec.Struct, frozen=True):
    """A packet of the session's state was published without a handoff; paths as above."""

    name: ClassVar[str] = "packet.saved"
    packet: str
    sequence: int
    target: str
    json_path: str
    text_path: str
    fingerprint: str


class PacketDelivered(HandoffLegEvent, frozen=True):
    """The packet's text reached the successor."""

    name: ClassVar[str] = "handoff.delivered"


class HandoffConfirmed(HandoffLegEvent, frozen=True):
    """The successor works on it: the handoff is done."""

    name: ClassVar[str] = "handoff.confirmed"


class HandoffFailed(msgspec.Struct, frozen=True):
    """The handoff stopped at `step`; what had been reached stays as it is."""

    name: ClassVar[str] = "handoff.failed"
    handoff: str
    step: str
    why: str


class HandoffCancelled(msgspec.Struct, frozen=True):
    """A person cancelled the handoff at `step`; the session will rest, with its packet if it has one."""

    name: ClassVar[str] = "handoff.cancelled"
    handoff: str
    step: str
    why: str = ""
    user: str = ""
    via: str = ""


class HandoffRetried(msgspec.Struct, frozen=True):
    """A failed or cancelled handoff goes on from where it stopped: from its packet, if it has one."""

    name: ClassVar[str] = "handoff.retried"
    handoff: str
    user: str = ""
    via: str = ""


class CriterionChecked(msgspec.Struct, frozen=True):
    """A criterion was checked: `verdict` is met, unmet or unchecked, `how` says how it is known.

    `by` is relay for a command that it ran, an agent for its own word, empty for a person's. `output` is the
    end of what the command printed.
    """

    name: ClassVar[str] = "criterion.checked"
    handoff: str
    criterion: str
    verdict: str
    how: str = ""
    by: str = ""
    output: str = ""


class BlockerNamed(msgspec.Struct, frozen=True):
    """Something blocks the handoff's task; `requires` is what would unblock it."""

    name: ClassVar[str] = "blocker.named"
    handoff: str
    kind: str
    text: str
    requires: str = ""


class HandoffClosed(msgspec.Struct, frozen=True):
    """The verdict on the handoff's result: completed or failed, by the agent `by` or a person (empty).

    An agent that would not take it over rejected it. `skipped` says why its rollback agent does not follow:
    `agent: reason`. The rest is what was reported, as in `HandoffReport`; criteria and blockers are events of
    their own before it.
    """

    name: ClassVar[str] = "handoff.closed"
    handoff: str
    verdict: str
    note: str = ""
    skipped: tuple[str, ...] = ()
    by: str = ""
    deliverables: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    suggested_next: str = ""
    user: str = ""
    via: str = ""


class HandoffRequested(msgspec.Struct, frozen=True):
    """The leg's agent asked for a handoff to `to_agent`; `handoff` is the id it gets when the turn is over.

    `text` is the whole request as people read it, `title` its task in short, `next_step` what is to be done
    first. Each of `files` is a JSON object with a path, and perhaps lines and a note. With `closes` the agent
    says that it failed at that handoff, or rejected it (`verdict`; empty for failed), and `to_agent` is the
    rollback agent; the rest is then as in `HandoffClosed`, which follows when the turn is over.
    """

    name: ClassVar[str] = "handoff.requested"
    handoff: str
    leg: str
    to_agent: str
    title: str
    text: str = ""
    next_step: str = ""
    priority: str = ""
    closes: str = ""
    files: tuple[str, ...] = ()
    verdict: str = ""
    deliverables: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()
    incomplete: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    suggested_next: str = ""
    user: str = ""
    via: str = ""


class HandoffWithdrawn(msgspec.Struct, frozen=True):
    """A handoff that an agent had asked for does not begin: a person said so, or nobody can take over."""

    name: ClassVar[str] = "handoff.withdrawn"
    handoff: str
    why: str = ""
    user: str = ""
    via: str = ""


class HandoffAccepted(msgspec.Struct, frozen=True):
    """The leg's agent said that it knows what the handoff expects of it."""

    name: ClassVar[str] = "handoff.accepted"
    handoff: str
    leg: str
    note: str = ""


class AgentNoted(msgspec.Struct, frozen=True):
    """The leg's agent saved a note on its work for the agent that takes over."""

    name: ClassVar[str] = "agent.noted"
    leg: str
    text: str
    next_step: str = ""


class TurnBegun(msgspec.Struct, frozen=True):
    """A headless turn was asked of `agent`: one prompt, to be worked on to its end by any agent that can.

    `most` is how many legs it may take in all, 0 for no limit; with `ends` the session ends
    with it. In a chat `seat` is the agent whose turn it is, `others` are those that may not take it over.
    `message` is the id its asker gave it, empty for none: a client that got no answer asks again by it.
    """

    name: ClassVar[str] = "turn.begun"
    agent: str
    prompt: str
    most: int = 0
    ends: bool = False
    seat: str = ""
    others: tuple[str, ...] = ()
    message: str = ""


class TurnEnded(msgspec.Struct, frozen=True):
    """The headless turn is over: `outcome` is done, failed, resting or stopped; `why` for the user.

    `said` are the agent's words in a turn of a chat: the other agents are given them. `refused` are the tools
    its agent asked for and was not allowed to use. One that was stopped with no `leg` never began: no agent
    was asked.
    """

    name: ClassVar[str] = "turn.ended"
    leg: str
    outcome: str
    why: str = ""
    said: str = ""
    refused: tuple[str, ...] = ()


class ChatBegun(msgspec.Struct, frozen=True):
    """From here on `agents` take turns; `task` is the user's message to them, empty if they only go on.

    `most` is how many turns they may take. `message` is the id its asker gave it, as a turn's.
    """

    name: ClassVar[str] = "chat.begun"
    agents: tuple[str, ...]
    task: str = ""
    most: int = 0
    message: str = ""


class SessionWaits(ReasonEvent, frozen=True):
    """Between two headless turns: no leg runs, and the next prompt may come."""

    name: ClassVar[str] = "session.waits"


class ContextNoted(msgspec.Struct, frozen=True):
    """The leg's context passed a mark: `used` of `room` tokens (0 unknown), as its agent wrote at `read_at`.

    `level` is the new one; `read_at` is ISO 8601.
    """

    name: ClassVar[str] = "context.noted"
    leg: str
    used: int
    room: int
    level: str
    read_at: str
    model: str = ""


class ContextCompacting(LegEvent, frozen=True):
    """The leg's agent is about to be told to compact its context."""

    name: ClassVar[str] = "context.compacting"


class ContextSpared(LegEvent, frozen=True):
    """The leg's agent was not told to compact after all: somebody had begun to type."""

    name: ClassVar[str] = "context.spared"


class SuccessorChosen(msgspec.Struct, frozen=True):
    """The leg is near a limit: `agent` would take over from it, and is prepared for that; empty for nobody.

    `skipped` says why the others would not: `agent: reason`. At the limit itself the choice is made again.
    """

    name: ClassVar[str] = "successor.chosen"
    leg: str
    agent: str
    skipped: tuple[str, ...] = ()


class DraftBegun(msgspec.Struct, frozen=True):
    """The leg's agent is about to be asked for a handoff document ahead of time; `cause` says why."""

    name: ClassVar[str] = "draft.begun"
    leg: str
    cause: str


class BudgetNoted(msgspec.Struct, frozen=True):
    """A budget passed a mark, or was found beyond it; the fields are as `Spending` has them."""

    name: ClassVar[str] = "budget.noted"
    leg: str
    budget: str
    mark: str
    text: str
    agent: str = ""
    then: str = "warn"
    period: str = ""
    until: str = ""


class BudgetApplied(msgspec.Struct, frozen=True):
    """The action the user set for a used-up budget is about to be taken on the leg."""

    name: ClassVar[str] = "budget.applied"
    leg: str
    budget: str
    period: str = ""
