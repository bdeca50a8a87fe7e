"""Define the table of state changes, and what events do to a session's turn and a handoff's lineage."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.session import NO_TERMS, Handoff, Session, Terms, Turn
from agent_relay.domain.state import LIVE, State

S = State


def _to(target: State, *sources: State) -> dict[State, State]:
    return dict.fromkeys(sources, target)


def _stay(*sources: State) -> dict[State, State]:
    return {source: source for source in sources}


TRANSITIONS: Mapping[type[events.Body], Mapping[State, State]] = MappingProxyType(
    {
        events.LegStarting: _to(S.STARTING, S.STARTING, S.READY, S.HANDING_OFF, S.RESTING, S.ENDED),
        events.LegStarted: _stay(*S),
        events.LegNamed: _stay(*S),
        events.LegReady: _to(S.READY, *LIVE),
        events.LegBusy: _to(S.BUSY, *LIVE),
        events.LegPrompted: _stay(*S),
        events.PromptSeen: _stay(*S),
        events.LegAnswered: _stay(*S),
        events.ClockWasSetBack: _stay(*S),
        events.LegAsking: _to(S.ASKING, *LIVE),
        events.SignalSeen: _stay(*S),
        work.HandoffBegun: _to(S.HANDING_OFF, *LIVE, S.LIMITED, S.RESTING, S.ENDED),
        work.PredecessorStopped: _stay(S.HANDING_OFF),
        work.PacketPublished: _stay(S.HANDING_OFF),
        work.PacketSaved: _stay(*S),
        work.PacketDelivered: _stay(*LIVE),
        events.TaskDelivered: _stay(*S),
        events.SessionMoved: _stay(*S),
        work.HandoffConfirmed: _stay(*LIVE),
        work.HandoffFailed: _stay(*LIVE) | _to(S.LIMITED, S.HANDING_OFF, S.STOPPING, S.LIMITED),
        work.HandoffCancelled: _to(S.HANDING_OFF, *LIVE, S.HANDING_OFF),
        work.HandoffRetried: _stay(*LIVE) | _to(S.HANDING_OFF, S.LIMITED, S.RESTING, S.ENDED),
        work.HandoffClosed: _stay(*S),
        events.LegEnded: _to(S.STOPPING, *LIVE, S.STOPPING)
        | _stay(S.LIMITED, S.HANDING_OFF, S.RESTING, S.ENDED),
        events.SessionRested: _to(S.RESTING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF),
        events.SessionWoke: _to(S.READY, S.RESTING),
        events.ReturnOffered: _stay(*S),
        events.ResumeAgreed: _stay(*S),
        events.LegContinues: _stay(*S),
        work.ContextNoted: _stay(*S),
        work.ContextCompacting: _stay(*S),
        work.ContextSpared: _stay(*S),
        work.DraftBegun: _stay(*S),
        work.BudgetNoted: _stay(*S),
        work.BudgetApplied: _stay(*S),
        events.SessionStopping: _to(S.STOPPING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF, S.STOPPING),
        events.SessionEnded: _to(S.ENDED, S.STOPPING, S.LIMITED, S.RESTING, S.STARTING, S.ENDED),
        work.ChatBegun: _stay(S.STARTING, S.READY, S.RESTING, S.ENDED),
        work.TurnBegun: _to(S.STARTING, S.STARTING, S.READY, S.RESTING, S.ENDED),
        work.TurnEnded: _stay(*S),
        work.SessionWaits: _to(S.READY, S.STOPPING),
        events.Unknown: _stay(*S),
    }
)
"""Where each event leads from each state; a deciding limit also leads from a live state to limited."""


def fold_turn(session: Session, body: work.TurnBegun | work.TurnEnded) -> Session:
    """Return the session after one more event about its turns."""
    if isinstance(body, work.TurnEnded):
        after = end_turn(session, body.outcome, body.why, body.refused)
        if after.turn is None or after.turn is session.turn or not never_began(body):
            return after
        return replace(after, turn=replace(after.turn, never_began=True))
    turn = Turn(body.agent, body.prompt, body.most, body.ends, seat=body.seat, others=body.others)
    return replace(session, turn=turn, why="", failure="", rested_until="", skipped=(), tried=())


def never_began(body: work.TurnEnded) -> bool:
    """Return whether the turn was given up before any agent was asked."""
    return body.outcome == "stopped" and not body.leg


def end_turn(session: Session, outcome: str, why: str, refused: tuple[str, ...] = ()) -> Session:
    """Return the session with this outcome for its open turn; a turn that has an outcome keeps it."""
    turn = session.open_turn
    if turn is None:
        return session
    return replace(session, turn=replace(turn, outcome=outcome, why=why, refused=refused))


def count_leg(turn: Turn | None, *, is_headless: bool) -> Turn | None:
    """Return the turn with one more leg, if that leg is headless."""
    return replace(turn, taken=turn.taken + 1) if turn is not None and is_headless else turn


def find_turn_by_message(journal: Sequence[events.Event], message: str) -> tuple[int, bool] | None:
    """Return the line number of the newest turn or chat asked for as `message`; `None` for none.

    Also return whether it was given up before any agent was asked, so that asking again asks no agent twice.
    For a chat that is always false: it goes on by asking for its next turn.
    """
    found: tuple[int, bool] | None = None
    is_open = False
    for event in journal:
        match event.body:
            case work.TurnBegun() as body:
                is_open = body.message == message
                found = (event.number, False) if is_open else found
            case work.ChatBegun() as body if body.message == message:
                found = (event.number, False)
            case work.TurnEnded() as body if is_open and found is not None and never_began(body):
                found = (found[0], True)
            case _:
                pass
    return found


def find_parent(session: Session) -> Handoff | None:
    """Return the handoff a new one follows: the one under way, the one that just failed, or the last."""
    return session.handoff or session.retriable or (session.done[-1] if session.done else None)


def inherit_terms(session: Session) -> Terms:
    """Return what is still expected of the next agent: the parent's terms, until a person judged it.

    A cancelled handoff takes its terms with it: those of the one before it count.
    """
    parent = find_parent(session)
    if parent is not None and parent.is_cancelled:
        parent = session.done[-1] if session.done else None
    return NO_TERMS if parent is None or parent.id in session.closed else parent.terms


def find_due(session: Session, body: work.HandoffClosed | work.HandoffFailed) -> Handoff | None:
    """Return the handoff whose rollback agent takes over next, with its `why` set; `None` for none.

    A successor that did not start is replaced by the order, in which its rollback agent comes first.
    """
    match body:
        case work.HandoffClosed(handoff, "failed", note, skipped) if not skipped:
            failed = next((done for done in session.done if done.id == handoff), None)
            why = note or (f"{failed.to_agent} did not succeed" if failed is not None else "")
        case work.HandoffFailed(_, "deliver" | "publish", why):
            failed = session.handoff
        case _:
            return None
    return replace(failed, why=why) if failed is not None and failed.terms.rollback else None


def build_rollback_terms(handoff: Handoff) -> Terms:
    """Return the terms for the rollback agent of a failed handoff: the same, without a rollback."""
    return replace(handoff.terms, rollback="")
