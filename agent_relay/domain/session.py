"""A session as a value: which leg runs, in which state, how far a handoff has come, on which terms.

`Terms` are what a person may set for a handoff: what is expected, how urgent it is, and who takes over
if it fails.
"""

from datetime import datetime
from enum import StrEnum

import msgspec

from agent_relay.domain.limits import UNKNOWN_CONTEXT, Context, Spending
from agent_relay.domain.protocol.handoff_report import NO_REPORT, HandoffReport
from agent_relay.domain.state import State
from agent_relay.domain.values import NOBODY, UNKNOWN_OWNER, Asker, Owner

PRIORITIES = ("low", "normal", "high", "urgent")


class Terms(msgspec.Struct, frozen=True):
    """A person's terms for a handoff, in their own words; empty if nothing was said.

    `checks` are criteria that are commands: relay runs them when the handoff is judged; they must succeed.
    `proposed_checks` are commands that an agent named: a person has to agree before relay runs them.
    `needs` are capabilities the target's adapter has to declare. `questions` are what the agent that takes
    over after a failure is to answer first; `rollback` names it.
    """

    deliverables: tuple[str, ...] = ()
    criteria: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    priority: str = ""
    needs: tuple[str, ...] = ()
    rollback: str = ""
    questions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    proposed_checks: tuple[str, ...] = ()

    @property
    def expects(self) -> bool:
        """True if a person has to say that the handoff is complete, or failed."""
        return bool(self.deliverables or self.all_criteria)

    @property
    def all_criteria(self) -> tuple[str, ...]:
        """Every criterion, in the order in which people count them: words, commands, proposed commands."""
        return (*self.criteria, *self.checks, *self.proposed_checks)

    @property
    def is_empty(self) -> bool:
        """True if no terms were set."""
        return not any(msgspec.structs.astuple(self))


NO_TERMS = Terms()


class Step(StrEnum):
    """Progress of a handoff: the last thing the journal says is true."""

    BEGUN = "begun"
    STOPPED = "stopped"
    PUBLISHED = "published"
    SPAWNING = "spawning"
    SPAWNED = "spawned"
    DELIVERED = "delivered"


class Prompt(msgspec.Struct, frozen=True):
    """A prompt that a leg was given, as in `PromptSeen`; `is_over` once its screen showed the turn's end."""

    text: str
    at: datetime
    native_id: str = ""
    left_out: int = 0
    is_over: bool = False


class Lane(msgspec.Struct, frozen=True):
    """The way in which a successor learns what it takes over, and why it is that one.

    `native_id` is its own conversation that it resumes, empty if it begins one and has only the packet.
    """

    native_id: str
    why: str


class Leg(msgspec.Struct, frozen=True):
    """One agent process of the session. `how` is empty while it lives.

    `was_ready` once it waited for a prompt, `was_busy` once it took one.
    `was_given` is whether the session's task reached it, `model` the one relay chose; empty for the user's.
    A `headless` one works on one turn without a screen. `owner` is the agent-relay it belongs to, and where
    its pids are valid. `asked` is the newest prompt its own signals reported, `lane_why`
    and `effort` as in `LegStarting`.
    """

    id: str
    agent: str
    generation: int
    starting_at: datetime
    native_id: str = ""
    transcript: str = ""
    handoff: str = ""
    packet: str = ""
    resumes: bool = False
    holder_pid: int = 0
    child_pid: int = 0
    child_born: int = 0
    was_ready: bool = False
    was_busy: bool = False
    was_given: bool = False
    how: str = ""
    status: int = -1
    ended_at: datetime | None = None
    model: str = ""
    headless: bool = False
    owner: Owner = UNKNOWN_OWNER
    asked: Prompt | None = None
    lane_why: str = ""
    effort: str = ""

    @property
    def is_over(self) -> bool:
        """True if the leg's process is known to be gone."""
        return bool(self.how)


class Handoff(msgspec.Struct, frozen=True):
    """A handoff; `leg` is the successor's once it is known, `model` the one it was given.

    `parent`, `depth` and `digest` are as in `HandoffBegun`. `is_cancelled` once a person cancelled it.
    `lacks` is what its packet does not contain. `is_digesting` while its successor writes a document first.
    """

    id: str
    from_leg: str
    from_agent: str
    to_agent: str
    reason: str
    began_at: datetime
    why: str = ""
    focus: str = ""
    skipped: tuple[str, ...] = ()
    step: Step = Step.BEGUN
    packet: str = ""
    sequence: int = 0
    json_path: str = ""
    text_path: str = ""
    leg: str = ""
    model: str = ""
    parent: str = ""
    depth: int = 0
    rolls_back: str = ""
    terms: Terms = NO_TERMS
    is_cancelled: bool = False
    lacks: str = ""
    digest: bool = False
    is_digesting: bool = False


class HandoffRequest(msgspec.Struct, frozen=True):
    """A handoff that the agent of `leg` asked for; it begins when the turn is over. As `HandoffRequested`.

    `verdict`, `note` and `report` judge the handoff `closes`, criteria and blockers left out; by `asker`.
    """

    id: str
    leg: str
    to_agent: str
    title: str
    at: datetime
    priority: str = ""
    closes: str = ""
    verdict: str = ""
    note: str = ""
    report: HandoffReport = NO_REPORT
    asker: Asker = NOBODY


class AgentNote(msgspec.Struct, frozen=True):
    """The newest note of `leg`'s agent on its work, for its successor; `files` are as in its event.

    `is_kept` once a checkpoint has it.
    """

    leg: str
    text: str
    at: datetime
    next_step: str = ""
    files: tuple[str, ...] = ()
    is_kept: bool = False


class Limit(msgspec.Struct, frozen=True):
    """The last limit that decided; `until` is ISO 8601 or empty, `model` what the agent named."""

    agent: str
    scope: str
    until: str
    text: str
    source: str
    at: datetime
    model: str = ""


class PutOff(msgspec.Struct, frozen=True):
    """Reason for which a preferred agent does not return for now, and the end of it; as in `ReturnPutOff`."""

    agent: str
    why: str
    until: str = ""


class Unasked(msgspec.Struct, frozen=True):
    """One time at which `agent` went on, or returned, although nobody asked for it then."""

    agent: str
    at: datetime


class Standby(msgspec.Struct, frozen=True):
    """The agent that would take over, started ahead as `leg`, which has no task and owns nothing.

    `setup` identifies the configuration it was started with; `is_dropped` once it is to be ended, `is_unfit`
    if it could not have taken over.
    """

    leg: Leg
    setup: str = ""
    is_dropped: bool = False
    is_unfit: bool = False


class UnusedStandby(msgspec.Struct, frozen=True):
    """A standby that ended `at` without having taken over; the rest is as in `Standby`."""

    agent: str
    setup: str
    at: datetime
    is_unfit: bool = False


class PreparedSuccessor(msgspec.Struct, frozen=True):
    """The agent that would take over near a limit, empty for none, and why the others would not."""

    agent: str
    skipped: tuple[str, ...] = ()


class Turn(msgspec.Struct, frozen=True):
    """The newest headless turn; `outcome` is as in `TurnEnded`, empty while it goes on.

    `taken` counts the legs it took, of which it may take `most` (0: no limit). With `ends` the
    session ends with it. `seat` and `others` are as in `TurnBegun`, empty outside a chat.
    With `never_began` it was given up before any agent was asked. `refused` are the tools its agent was not
    allowed to use.
    """

    agent: str
    prompt: str
    most: int = 0
    ends: bool = False
    taken: int = 0
    outcome: str = ""
    why: str = ""
    seat: str = ""
    others: tuple[str, ...] = ()
    never_began: bool = False
    refused: tuple[str, ...] = ()

    @property
    def is_spent(self) -> bool:
        """True if it may take no further leg."""
        return 0 < self.most <= self.taken


class Session(msgspec.Struct, frozen=True):
    """The fold of a journal.

    `generation` is the newest leg's and the lease of every write. `tried` are the agents a failing
    handoff has been through since the last success. `failure` is the last failed handoff's reason.
    `offered` is the preferred agent that was last offered back, `offer` the same until another leg begins,
    `returns` whether it comes by itself at the turn's end, `put_off` who cannot return although its reset has
    passed, and `held` why one that was offered does not come by itself although it was to. `limits` is the
    last limit of every agent, `unasked` who went on unasked. `agreed` is whether a person (`agreed_by`) said
    that work may go on by itself after this rest, `continues_at` when the agent at work does so by itself
    (ISO 8601), and `agent_may_continue` whether relay leaves it to do so. `refused` are the agents that
    were signed out or had their key refused at their last report, with what they said. `packets` is the
    highest packet number, `saved` are the numbers of packets without a handoff. `near` is the running
    leg's warning that a limit is close, `warned` the warnings of each window that the user has seen,
    `prepared` who would take over then, `standby` the same agent where it was started ahead, until it
    takes over or is gone, `unused_standbys` the newest of those before it that did not take over.
    `retriable` is the last handoff, if it failed or was cancelled and the session has not gone on since;
    `closed` are the handoffs a person has judged. `due` is a failed one whose rollback agent is to take over.
    `turn` is the newest headless turn, `budgets` what is known of those that passed a mark. `request` is the
    handoff that the agent at work asked for, `note` the newest an agent said of its work, `accepted` are the
    handoffs that their successors accepted.
    """

    id: str
    root: str
    cwd: str
    created_at: datetime
    updated_at: datetime
    state: State = State.STARTING
    roster: tuple[str, ...] = ()
    task: str = ""
    generation: int = 0
    number: int = 0
    legs: tuple[Leg, ...] = ()
    handoff: Handoff | None = None
    done: tuple[Handoff, ...] = ()
    packets: int = 0
    saved: tuple[int, ...] = ()
    near: Limit | None = None
    warned: tuple[Limit, ...] = ()
    prepared: PreparedSuccessor | None = None
    standby: Standby | None = None
    unused_standbys: tuple[UnusedStandby, ...] = ()
    tried: tuple[str, ...] = ()
    limit: Limit | None = None
    limits: tuple[Limit, ...] = ()
    rested_until: str = ""
    reset_assumed: bool = False
    skipped: tuple[str, ...] = ()
    failure: str = ""
    why: str = ""
    offered: str = ""
    offer: str = ""
    returns: bool = False
    held: str = ""
    put_off: tuple[PutOff, ...] = ()
    unasked: tuple[Unasked, ...] = ()
    agreed: bool = False
    agreed_by: Asker = NOBODY
    continues_at: str = ""
    agent_may_continue: bool = False
    refused: tuple[Limit, ...] = ()
    retriable: Handoff | None = None
    closed: tuple[str, ...] = ()
    due: Handoff | None = None
    context: Context = UNKNOWN_CONTEXT
    turn: Turn | None = None
    budgets: tuple[Spending, ...] = ()
    request: HandoffRequest | None = None
    note: AgentNote | None = None
    accepted: tuple[str, ...] = ()

    @property
    def open_turn(self) -> Turn | None:
        """The headless turn that is not over; `None` if there is none or people work in the session."""
        return self.turn if self.turn is not None and not self.turn.outcome else None

    @property
    def leg(self) -> Leg | None:
        """The newest leg, living or over."""
        return self.legs[-1] if self.legs else None

    @property
    def living_leg(self) -> Leg | None:
        """The newest leg while it is not known to be over."""
        leg = self.leg
        return None if leg is None or leg.is_over else leg

    @property
    def all_legs(self) -> tuple[Leg, ...]:
        """The legs, and the standby's."""
        return self.legs if self.standby is None else (*self.legs, self.standby.leg)

    def is_standby(self, leg_id: str) -> bool:
        """Return whether the leg is the standby's."""
        return self.standby is not None and self.standby.leg.id == leg_id

    @property
    def shown_state(self) -> State:
        """The state as people see it: an agent that waits for its packet is not ready for them."""
        is_owed = self.handoff is not None and self.state is State.READY
        return State.STARTING if is_owed else self.state

    @property
    def agent(self) -> str:
        """The agent of the newest leg, empty before the first."""
        return self.leg.agent if self.leg else ""

    @property
    def is_held(self) -> bool:
        """True if the session rests because a person cancelled its handoff: only a person ends that."""
        return self.state is State.RESTING and self.retriable is not None and self.retriable.is_cancelled

    @property
    def may_owe_packet(self) -> bool:
        """True if a packet may wait for an agent: one was saved, or a handoff can be retried."""
        return bool(self.saved) or self.retriable is not None

    @property
    def refusal(self) -> Limit | None:
        """The report of the agent at work that it was signed out or its key refused; `None` without one."""
        return next((found for found in self.refused if found.agent == self.agent), None)
