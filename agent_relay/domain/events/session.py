"""The lines of a session's journal: `Event`, the union of all, and those about the session and its legs.

Also here: checkpoints, the task's delivery, prompts reported before the agent's own record has them, the
session's move to another place, what may go on by itself when a limit is over, and an agent's wish to be
compacted.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, get_args

import msgspec

from agent_relay.domain.events import standby, work
from agent_relay.domain.values import Owner


class TaskDelivered(work.LegEvent, frozen=True):
    """The session's task reached its first leg."""

    name: ClassVar[str] = "task.delivered"


class SessionMoved(msgspec.Struct, frozen=True):
    """The repository was renamed or moved, and the session's folder with it."""

    name: ClassVar[str] = "session.moved"
    root: str
    cwd: str


class PromptSeen(msgspec.Struct, frozen=True):
    """The leg's agent took a prompt of the user's, by its own signals, at `asked_at` (ISO 8601).

    A long `text` is cut at its end, by `left_out` characters. `native_id` is the conversation it was asked
    in, empty if unknown.
    """

    name: ClassVar[str] = "prompt.seen"
    leg: str
    text: str
    asked_at: str
    native_id: str = ""
    left_out: int = 0


class NearLimitEnded(work.LegEvent, frozen=True):
    """The leg's agent is no longer near a limit: its usage window has room again."""

    name: ClassVar[str] = "near-limit.ended"


class ResumeAgreed(msgspec.Struct, frozen=True):
    """During a rest, a person agreed that work goes on by itself afterwards, once; or took that back."""

    name: ClassVar[str] = "resume.agreed"
    agreed: bool = True
    user: str = ""
    via: str = ""


class LegContinues(msgspec.Struct, frozen=True):
    """The leg's agent said that it goes on by itself `at` (ISO 8601); empty if it no longer says so.

    `allowed` is whether relay leaves it to do so; otherwise its timer is cancelled.
    """

    name: ClassVar[str] = "leg.continues"
    leg: str
    at: str = ""
    allowed: bool = True


class ContextWished(msgspec.Struct, frozen=True):
    """The leg's agent asked for its context to be compacted when its turn is over, and said `why`.

    With `asks` that is up to the user, who is told; otherwise relay does it.
    """

    name: ClassVar[str] = "context.wished"
    leg: str
    why: str = ""
    asks: bool = False


class SessionCreated(msgspec.Struct, frozen=True):
    """A session began in `cwd`; `root` is the folder that holds its `.agent-relay`."""

    name: ClassVar[str] = "session.created"
    session: str
    root: str
    cwd: str
    roster: tuple[str, ...] = ()
    task: str = ""


class LegStarting(msgspec.Struct, frozen=True):
    """A leg is about to be spawned; `generation` (from 1) is the session's lease, `model` relay's choice.

    A `headless` one works on one turn without a screen. `host` and the four after it name its owner, as
    `Owner` has them. Of one that a handoff brought, `lane_why` is why it resumes a conversation or not.
    `effort` is the level that the user had chosen for another agent and that is passed on. `instead` is why
    the agent that was asked for the turn cannot work on it. All of these are empty in journals older than
    them.
    """

    name: ClassVar[str] = "leg.starting"
    leg: str
    agent: str
    generation: int
    native_id: str = ""
    handoff: str = ""
    packet: str = ""
    resumes: bool = False
    model: str = ""
    headless: bool = False
    host: str = ""
    machine: str = ""
    boot: str = ""
    pid_namespace: str = ""
    runtime: str = ""
    lane_why: str = ""
    effort: str = ""
    instead: str = ""

    @property
    def owner(self) -> Owner:
        """The owner of the leg."""
        return Owner(self.host, self.machine, self.boot, self.pid_namespace, self.runtime)


class LegStarted(msgspec.Struct, frozen=True):
    """The leg's process lives. `child_born` is its start time in clock ticks, from /proc."""

    name: ClassVar[str] = "leg.started"
    leg: str
    holder_pid: int
    child_pid: int
    child_born: int


class LegNamed(msgspec.Struct, frozen=True):
    """The agent's own session id and transcript became known."""

    name: ClassVar[str] = "leg.named"
    leg: str
    native_id: str = ""
    transcript: str = ""


class LegReady(work.LegEvent, frozen=True):
    """The leg waits for a prompt."""

    name: ClassVar[str] = "leg.ready"


class LegBusy(work.LegEvent, frozen=True):
    """The leg works on a turn."""

    name: ClassVar[str] = "leg.busy"


class LegAsking(work.LegEvent, frozen=True):
    """The leg waits for an approval or an answer; nothing may be typed into it."""

    name: ClassVar[str] = "leg.asking"


class LegPrompted(work.LegEvent, frozen=True):
    """The leg took its first prompt, by its own records: a short turn is over before its screen is read."""

    name: ClassVar[str] = "leg.prompted"


class LegAnswered(work.LegEvent, frozen=True):
    """The leg's agent answers again after it had been refused: it was signed in, or its key replaced."""

    name: ClassVar[str] = "leg.answered"


class ClockWasSetBack(msgspec.Struct, frozen=True):
    """The wall clock was set back while the leg lived: what it wrote after is newer than `since` (ISO)."""

    name: ClassVar[str] = "clock.set-back"
    leg: str
    since: str


class SignalSeen(msgspec.Struct, frozen=True):
    """A detector's finding; `until` is ISO 8601 or empty."""

    name: ClassVar[str] = "signal.seen"
    leg: str
    agent: str
    kind: str
    scope: str
    source: str
    text: str
    decides: bool
    until: str = ""
    rule: str = ""
    model: str = ""


class LegEnded(msgspec.Struct, frozen=True):
    """The leg is over: `how` is exited, stopped, lost or unstarted; `status` as a shell has it, or -1."""

    name: ClassVar[str] = "leg.ended"
    leg: str
    how: str
    status: int = -1


class SessionRested(msgspec.Struct, frozen=True):
    """No agent is available; `until` is the earliest reset (ISO 8601) or empty.

    `assumed` is whether its agent did not name that reset.
    """

    name: ClassVar[str] = "session.rested"
    why: str
    until: str = ""
    skipped: tuple[str, ...] = ()
    assumed: bool = False


class SessionWoke(msgspec.Struct, frozen=True):
    """A rest is over and the leg still lives; with `offers` its agent waits for a prompt to go on."""

    name: ClassVar[str] = "session.woke"
    why: str = ""
    offers: bool = False


class ReturnOffered(msgspec.Struct, frozen=True):
    """A preferred agent's window has reset: offered back once, or back `by_itself` at the turn's end.

    `why` is why it does not return by itself although it was to; empty if it does, or was not to.
    """

    name: ClassVar[str] = "return.offered"
    agent: str
    by_itself: bool = False
    why: str = ""


class ReturnPutOff(msgspec.Struct, frozen=True):
    """A preferred agent cannot return although its reset has passed.

    It is looked at again `until` (ISO 8601, empty if nobody knows when).
    """

    name: ClassVar[str] = "return.put-off"
    agent: str
    why: str
    until: str = ""


class ConsentUsed(msgspec.Struct, frozen=True):
    """`agent` goes on unasked at a `reset` (ISO 8601, empty if unknown); the next line says how.

    A person agreed to it `once`, for this rest, or in the configuration: `always`, by `resume_at_reset`, or
    to every `return`. `user` and `via` are the `Asker`.
    """

    name: ClassVar[str] = "consent.used"
    agent: str
    consent: str
    reset: str = ""
    user: str = ""
    via: str = ""


class SessionStopping(work.ReasonEvent, frozen=True):
    """The user asked for the end."""

    name: ClassVar[str] = "session.stopping"


class SessionEnded(work.ReasonEvent, frozen=True):
    """No leg runs; the session can be continued by a new one."""

    name: ClassVar[str] = "session.ended"


class Unknown(msgspec.Struct, frozen=True):
    """A line of a newer version: kept, not dropped."""

    name: str
    data: Mapping[str, object]


class CheckpointMade(msgspec.Struct, frozen=True):
    """The facts at a turn's end: the tree, the last prompt and answer (shortened), the checks that ran.

    `files` are changed ones (`modified src/a.py`), of `changed` in all. `turns` are the user's prompts in the
    conversation so far, 0 if unknown. `kept` is the file, relative to the session's folder, that has what the
    conversation gained; empty if that is nothing, or could not be read or kept: `lacks` says why. `note` and
    `next_step` are what the agent itself said of its work since the checkpoint before (shortened), at
    `noted_at` (ISO 8601): its own statement.
    """

    name: ClassVar[str] = "checkpoint.made"
    leg: str
    head: str = ""
    branch: str = ""
    fingerprint: str = ""
    files: tuple[str, ...] = ()
    changed: int = 0
    prompt: str = ""
    answer: str = ""
    checks: tuple[str, ...] = ()
    turns: int = 0
    kept: str = ""
    lacks: str = ""
    note: str = ""
    next_step: str = ""
    noted_at: str = ""


Body = (
    SessionCreated
    | LegStarting
    | LegStarted
    | LegNamed
    | LegReady
    | LegBusy
    | LegAsking
    | LegPrompted
    | PromptSeen
    | LegAnswered
    | ClockWasSetBack
    | SignalSeen
    | work.HandoffBegun
    | work.PredecessorStopped
    | work.DigestBegun
    | work.DigestEnded
    | work.PacketPublished
    | work.PacketSaved
    | work.PacketDelivered
    | TaskDelivered
    | SessionMoved
    | work.HandoffConfirmed
    | work.HandoffFailed
    | work.HandoffCancelled
    | work.HandoffRetried
    | work.CriterionChecked
    | work.BlockerNamed
    | work.HandoffClosed
    | work.HandoffRequested
    | work.HandoffWithdrawn
    | work.HandoffAccepted
    | work.AgentNoted
    | LegEnded
    | SessionRested
    | SessionWoke
    | ReturnOffered
    | ReturnPutOff
    | ConsentUsed
    | ResumeAgreed
    | LegContinues
    | work.ContextNoted
    | work.ContextCompacting
    | ContextWished
    | work.ContextSpared
    | work.DraftBegun
    | work.SuccessorChosen
    | NearLimitEnded
    | work.BudgetNoted
    | work.BudgetApplied
    | SessionStopping
    | SessionEnded
    | work.ChatBegun
    | work.TurnBegun
    | work.TurnEnded
    | work.SessionWaits
    | CheckpointMade
    | standby.StandbyStarting
    | standby.StandbyStarted
    | standby.StandbyReady
    | standby.StandbyDropped
    | standby.StandbyEnded
    | Unknown
)

KNOWN = tuple(kind for kind in get_args(Body) if kind is not Unknown)
"""Every event this version knows; `Unknown` stands for the rest."""


class Event(msgspec.Struct, frozen=True):
    """One journal line. `number` counts from 1; `generation` is the lease under which it was written."""

    number: int
    at: datetime
    generation: int
    body: Body
