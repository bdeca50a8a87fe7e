"""Inputs of the state machine: what happened to a session, and what its user or a clock asks for."""

from datetime import datetime

import msgspec

from agent_relay.domain.events.work import CriterionChecked
from agent_relay.domain.limits import Signal, Spending
from agent_relay.domain.protocol.handoff_report import NO_REPORT, HandoffReport
from agent_relay.domain.session import NO_TERMS, Terms
from agent_relay.domain.values import NOBODY, Asker


class ContextFilled(msgspec.Struct, frozen=True):
    """The leg's context is between other marks than before: `used` of `room` tokens (0 unknown).

    `at` is when its agent said so (aware).
    """

    leg: str
    used: int
    room: int
    at: datetime
    model: str = ""


class CompactSkipped(msgspec.Struct, frozen=True):
    """The leg's agent was not told to compact after all: somebody had begun to type."""

    leg: str


class NearLimitOver(msgspec.Struct, frozen=True):
    """The leg's usage window that was near its limit clearly is not any more, and no other one is."""

    leg: str


class LegQuiet(msgspec.Struct, frozen=True):
    """The leg waits for a prompt, and nobody is typing one."""

    leg: str


class BudgetsCounted(msgspec.Struct, frozen=True):
    """Usage was counted while the leg lives: how much of its agent's budgets is used."""

    leg: str
    found: tuple[Spending, ...]


class ContinueAnnounced(msgspec.Struct, frozen=True):
    """The leg's screen says that its agent goes on by itself `at`; `None` if it no longer does."""

    leg: str
    at: datetime | None


class ResumeAsked(msgspec.Struct, frozen=True):
    """A person wants a session that rests to go on by itself at the first reset, or not to."""

    agreed: bool = True
    asker: Asker = NOBODY


class ContinueAsked(msgspec.Struct, frozen=True):
    """A person wants a session that rested to go on now, with an agent that is available again."""

    asker: Asker = NOBODY


class HandoffAsked(msgspec.Struct, frozen=True):
    """A person or program asked for a handoff to `agent`, empty for the next; `force` overrides a rest.

    If `terms` are empty, what is still expected of the agent at work is passed on. With `digest` the
    successor writes a document from the record first. With `turn` only the headless turn under way is handed
    over, and nothing if it has ended.
    """

    agent: str
    reason: str = "manual"
    focus: str = ""
    force: bool = False
    terms: Terms = NO_TERMS
    digest: bool = False
    turn: bool = False
    asker: Asker = NOBODY


class HandoffWished(msgspec.Struct, frozen=True):
    """The leg's agent asked for a handoff after its turn; the other fields are as in `HandoffRequested`."""

    leg: str
    agent: str
    title: str
    text: str
    next_step: str
    priority: str = ""
    files: tuple[str, ...] = ()
    asker: Asker = NOBODY


class AcceptSaid(msgspec.Struct, frozen=True):
    """The leg's agent accepted the handoff that started it."""

    leg: str
    note: str = ""


class VerdictSaid(msgspec.Struct, frozen=True):
    """The leg's agent judged the handoff that started it: completed, failed or rejected.

    `checked` is what relay found by running commands.
    """

    leg: str
    verdict: str
    note: str = ""
    report: HandoffReport = NO_REPORT
    checked: tuple[CriterionChecked, ...] = ()
    asker: Asker = NOBODY


class NoteSaid(msgspec.Struct, frozen=True):
    """The leg's agent saved a note on its work."""

    leg: str
    text: str
    next_step: str = ""


class CompactWished(msgspec.Struct, frozen=True):
    """The leg's agent asked for its conversation to be compacted after its turn."""

    leg: str
    why: str = ""


class CancelAsked(msgspec.Struct, frozen=True):
    """A person cancelled the handoff."""

    handoff: str
    why: str = ""
    asker: Asker = NOBODY


class RetryAsked(msgspec.Struct, frozen=True):
    """A person wants the handoff to go on from where it stopped; `force` overrides a rest."""

    handoff: str
    force: bool = False
    asker: Asker = NOBODY


class CloseAsked(msgspec.Struct, frozen=True):
    """A person, or the agent `by`, judged the handoff: completed, failed or, by an agent alone, rejected.

    `checked` is what relay found by running commands. With `anyway` it is completed although a criterion is
    unmet.
    """

    handoff: str
    verdict: str
    note: str = ""
    by: str = ""
    report: HandoffReport = NO_REPORT
    checked: tuple[CriterionChecked, ...] = ()
    anyway: bool = False
    asker: Asker = NOBODY


Asked = (
    HandoffAsked
    | HandoffWished
    | VerdictSaid
    | CancelAsked
    | RetryAsked
    | CloseAsked
    | ResumeAsked
    | ContinueAsked
)
"""Inputs that are journalled with the name of the user who asked."""


class Spawned(msgspec.Struct, frozen=True):
    """The leg's process lives."""

    leg: str
    holder_pid: int
    child_pid: int
    child_born: int


class StateSeen(msgspec.Struct, frozen=True):
    """The settled screen (or the agent's own state) reads ready, busy or asking."""

    leg: str
    state: str


class PromptTaken(msgspec.Struct, frozen=True):
    """The agent's own records say that it took a prompt."""

    leg: str


class SignalFound(msgspec.Struct, frozen=True):
    """The detector found something about the leg."""

    leg: str
    signal: Signal


class Answered(msgspec.Struct, frozen=True):
    """The leg's agent answered a prompt, as its own records say: it is not limited (any more).

    `at` is when, by the record's own time (aware); `None` if unknown.
    """

    leg: str
    at: datetime | None = None


class ClockSetBack(msgspec.Struct, frozen=True):
    """The wall clock was set back while the leg lived: what it writes from now on is newer than `since`."""

    leg: str
    since: datetime


class LegGone(msgspec.Struct, frozen=True):
    """The leg's processes are gone: `how` is exited, stopped, lost or unstarted; `why` for the user.

    `is_done` is whether a headless agent had reported that its turn ended successfully, `said` what it said
    in a turn of a chat, `refused` the tools it was not allowed to use.
    """

    leg: str
    how: str
    status: int = -1
    why: str = ""
    is_done: bool = False
    said: str = ""
    refused: tuple[str, ...] = ()


class Published(msgspec.Struct, frozen=True):
    """The packet is visible; `lacks` says what could not be read into it; empty for nothing."""

    handoff: str
    packet: str
    sequence: int
    json_path: str
    text_path: str
    fingerprint: str
    lacks: str = ""


class PublishFailed(msgspec.Struct, frozen=True):
    """The packet could not be published."""

    handoff: str
    why: str


class Delivered(msgspec.Struct, frozen=True):
    """The packet's text is in the leg."""

    handoff: str
    leg: str


class DeliverFailed(msgspec.Struct, frozen=True):
    """The packet's text could not be put into the leg, which lives on."""

    handoff: str
    leg: str
    why: str


class TaskGiven(msgspec.Struct, frozen=True):
    """The session's task is in the leg."""

    leg: str


class ResetPassed(msgspec.Struct, frozen=True):
    """A moment asked for by WakeAt has come."""


class StopAsked(msgspec.Struct, frozen=True):
    """A person or program asked for the session's end."""

    why: str = ""


class TurnAsked(msgspec.Struct, frozen=True):
    """A headless turn of `agent` was asked for; the other fields are as in `TurnBegun`."""

    agent: str
    prompt: str
    most: int = 0
    ends: bool = False
    seat: str = ""
    others: tuple[str, ...] = ()
    message: str = ""


class Restarted(msgspec.Struct, frozen=True):
    """A new daemon took over; `leg_lives` is whether the newest leg's holder does.

    `leg_began` is whether its program may have been started, if the journal does not say so.
    """

    leg_lives: bool
    leg_began: bool = True


Input = (
    HandoffAsked
    | HandoffWished
    | AcceptSaid
    | VerdictSaid
    | NoteSaid
    | CompactWished
    | CancelAsked
    | RetryAsked
    | CloseAsked
    | Spawned
    | StateSeen
    | PromptTaken
    | SignalFound
    | Answered
    | ClockSetBack
    | ContextFilled
    | NearLimitOver
    | LegQuiet
    | CompactSkipped
    | BudgetsCounted
    | LegGone
    | Published
    | PublishFailed
    | Delivered
    | DeliverFailed
    | TaskGiven
    | ResetPassed
    | ContinueAnnounced
    | ResumeAsked
    | ContinueAsked
    | StopAsked
    | TurnAsked
    | Restarted
)
