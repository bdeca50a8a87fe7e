"""Define the table of state changes, and what an event does to one part of a session.

The parts are its turn, a handoff's lineage, its context, near limits and budgets. The user is warned once for
each window of a limit: a session remembers the warnings its user has seen. Fold and messages both import this
module, so it imports nothing but the domain.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import get_args

from agent_relay.domain.events import session as events
from agent_relay.domain.events import standby, work
from agent_relay.domain.limits import Context, Level, Mark, Spending
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import (
    NO_TERMS,
    Handoff,
    Limit,
    PreparedSuccessor,
    Session,
    Terms,
    Turn,
)
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import replace

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
        work.DigestBegun: _stay(*S),
        work.DigestEnded: _stay(*S),
        work.PacketPublished: _stay(S.HANDING_OFF),
        work.PacketSaved: _stay(*S),
        work.PacketDelivered: _stay(*LIVE),
        events.TaskDelivered: _stay(*S),
        events.SessionMoved: _stay(*S),
        work.HandoffConfirmed: _stay(*LIVE),
        work.HandoffFailed: _stay(*LIVE) | _to(S.LIMITED, S.HANDING_OFF, S.STOPPING, S.LIMITED),
        work.HandoffCancelled: _to(S.HANDING_OFF, *LIVE, S.HANDING_OFF),
        work.HandoffRetried: _stay(*LIVE) | _to(S.HANDING_OFF, S.LIMITED, S.RESTING, S.ENDED),
        work.CriterionChecked: _stay(*S),
        work.BlockerNamed: _stay(*S),
        work.HandoffClosed: _stay(*S),
        work.HandoffRequested: _stay(*S),
        work.HandoffWithdrawn: _stay(*S),
        work.HandoffAccepted: _stay(*S),
        work.AgentNoted: _stay(*S),
        events.LegEnded: _to(S.STOPPING, *LIVE, S.STOPPING)
        | _stay(S.LIMITED, S.HANDING_OFF, S.RESTING, S.ENDED),
        events.SessionRested: _to(S.RESTING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF),
        events.SessionWoke: _to(S.READY, S.RESTING),
        events.ReturnOffered: _stay(*S),
        events.ReturnPutOff: _stay(*S),
        events.ConsentUsed: _stay(*S),
        events.ResumeAgreed: _stay(*S),
        events.LegContinues: _stay(*S),
        work.ContextNoted: _stay(*S),
        work.ContextCompacting: _stay(*S),
        work.ContextSpared: _stay(*S),
        events.ContextWished: _stay(*S),
        work.DraftBegun: _stay(*S),
        work.SuccessorChosen: _stay(*S),
        events.NearLimitEnded: _stay(*S),
        work.BudgetNoted: _stay(*S),
        events.CheckpointMade: _stay(*S),
        work.BudgetApplied: _stay(*S),
        events.SessionStopping: _to(S.STOPPING, *LIVE, S.LIMITED, S.RESTING, S.HANDING_OFF, S.STOPPING),
        events.SessionEnded: _to(S.ENDED, S.STOPPING, S.LIMITED, S.RESTING, S.STARTING, S.ENDED),
        work.ChatBegun: _stay(S.STARTING, S.READY, S.RESTING, S.ENDED),
        work.TurnBegun: _to(S.STARTING, S.STARTING, S.READY, S.RESTING, S.ENDED),
        work.TurnEnded: _stay(*S),
        work.SessionWaits: _to(S.READY, S.STOPPING),
        **{kind: _stay(*S) for kind in get_args(standby.StandbyBody)},
        events.Unknown: _stay(*S),
    }
)
"""Next state for each event and state; a deciding limit also leads from a live state to limited."""


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
        case work.HandoffClosed(handoff, "failed" | "rejected", note, skipped) if not skipped:
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


_LEVELS = frozenset(level.value for level in Level)


def note_context(context: Context, noted: work.ContextNoted, read_at: datetime) -> Context:
    """Return the context after a reading by its agent; one that is low again may be acted on anew."""
    level = Level(noted.level)
    is_low = level is Level.LOW
    peak = level if is_low or level.is_above(context.peak) else context.peak
    known = replace(context, used=noted.used, room=noted.room, level=level, peak=peak, read_at=read_at)
    return replace(known, is_spent=False, is_drafted=False, wish="") if is_low else known


def fold_context(context: Context, body: events.Body, event: events.Event) -> Context:  # noqa: PLR0911 - one arm an event
    """Return the context after one more event; an event with invalid values changes nothing."""
    match body:
        case work.ContextNoted():
            read_at = parse_moment(body.read_at)
            if read_at is None or body.level not in _LEVELS:
                return context
            return note_context(context, body, read_at)
        case work.ContextCompacting():
            wish = "compacting" if context.wish == "compact" else context.wish
            return replace(context, is_spent=context.is_filling, relieved_at=event.at, wish=wish)
        case events.ContextWished():
            return replace(context, wish="ask" if body.asks else "compact", is_spent=False)
        case work.ContextSpared():
            # The cooldown of the relief before this one was over, or this would not have been tried.
            wish = "compact" if context.wish == "compacting" else context.wish
            return replace(context, is_spent=False, relieved_at=None, wish=wish)
        case work.DraftBegun():
            return replace(context, is_drafted=True, has_drafted=True, drafted_at=event.at)
    return context


def begin_context(context: Context, *, is_relief: bool) -> Context:
    """Return the context of a leg that begins, `is_relief` if the one before it was full.

    Such a leg has to be seen low first: if a fresh start is full at once, another one would be, too.
    """
    kept = Context(relieved_at=context.relieved_at, drafted_at=context.drafted_at)
    return replace(kept, is_spent=is_relief)


# Countdowns and clock times move the reset they imply by their rounding; usage windows are hours apart.
_SAME_WINDOW = timedelta(minutes=10)


def build_limit(body: events.SignalSeen, at: datetime) -> Limit:
    """Return the limit a signal tells of, seen `at` that moment."""
    return Limit(body.agent, body.scope, body.until, body.text, body.source, at, body.model)


def is_warning(body: events.SignalSeen) -> bool:
    """Return whether a seen signal says for certain that a limit is close."""
    return body.decides and body.scope == "warning"


def is_told(session: Session, body: events.SignalSeen, at: datetime) -> bool:
    """Return whether the user was warned that this window is nearly used up, by whichever source."""
    return any(
        _is_same(known, body.agent, body.model, body.until)
        for known in session.warned
        if not known.until or _is_open(known, at)
    )


def note_warning(session: Session, warning: Limit) -> Session:
    """Return the session with its agent near a limit; its user is warned of this window until it resets."""
    kept = [known for known in session.warned if not known.until or _is_open(known, warning.at)]
    same = [known for known in kept if _is_same(known, warning.agent, warning.model, warning.until)]
    if not any(known.until for known in same):
        kept = [*(known for known in kept if known not in same), warning]
    return replace(session, near=warning, warned=tuple(kept))


def forget_leg(session: Session, at: datetime) -> Session:
    """Return the session at the start of another leg: it keeps only warnings of windows known to be open."""
    kept = tuple(known for known in session.warned if _is_open(known, at))
    return replace(session, near=None, warned=kept, prepared=None)


def _is_same(known: Limit, agent: str, model: str, until: str) -> bool:
    """Return whether a warning may be of the window of a known one: an unknown reset may be any."""
    if (known.agent, known.model) != (agent, model):
        return False
    one, other = parse_moment(known.until), parse_moment(until)
    return one is None or other is None or abs(one - other) <= _SAME_WINDOW


def _is_open(known: Limit, at: datetime) -> bool:
    until = parse_moment(known.until)
    return until is not None and until > at


def fold_usage(
    session: Session,
    body: work.BudgetNoted | work.BudgetApplied | work.SuccessorChosen,
    event: events.Event,
) -> Session:
    """Return the session after one more event; an event with invalid values changes nothing."""
    if isinstance(body, work.SuccessorChosen):
        is_own = session.leg is not None and session.leg.id == body.leg
        return replace(session, prepared=PreparedSuccessor(body.agent, body.skipped)) if is_own else session
    known = find_spending(session, body.budget)
    if isinstance(body, work.BudgetApplied):
        if known is None or known.period != body.period:
            return session
        return _with(session, replace(known, is_done=True))
    if body.mark not in set(Mark):
        return session
    is_same = known is not None and known.period == body.period
    noted = Spending(
        body.budget,
        Mark(body.mark),
        body.text,
        agent=body.agent,
        then=body.then,
        period=body.period,
        until=body.until,
        at=event.at,
        is_done=known.is_done if known is not None and is_same else False,
    )
    return _with(session, noted)


def find_spending(session: Session, budget: str) -> Spending | None:
    """Return what the session knows of a budget; `None` for nothing."""
    return next((known for known in session.budgets if known.budget == budget), None)


def is_budget_news(known: Spending | None, found: Spending) -> bool:
    """Return whether the user is to see what was found: a budget that is used more than before.

    Within a day, and in a session, use only grows. That a budget cannot be counted is news, too, and that it
    can be again, except for one that is used up.
    """
    if known is None or known.period != found.period:
        return found.mark is not Mark.OPEN
    if Mark.UNCOUNTED in {known.mark, found.mark}:
        return known.mark not in {found.mark, Mark.SPENT}
    return found.mark.is_above(known.mark)


def _with(session: Session, noted: Spending) -> Session:
    others = tuple(known for known in session.budgets if known.budget != noted.budget)
    return replace(session, budgets=(*others, noted))


def is_budget_current(known: Spending, now: datetime) -> bool:
    """Return whether the budget's day is not over."""
    until = parse_moment(known.until)
    return until is None or until > now


def is_budget_of(known: Spending, agent: str) -> bool:
    """Return whether `agent` draws on the budget."""
    return known.agent in ("", agent)


def find_worst_budget(session: Session, now: datetime) -> Spending | None:
    """Return the budget the agent at work has used most of, the newest on a tie; `None` if all are open."""
    found = [
        known
        for known in session.budgets
        if known.mark is not Mark.OPEN
        and is_budget_current(known, now)
        and is_budget_of(known, session.agent)
    ]
    worst: Spending | None = None
    for known in found:
        if worst is None or not worst.mark.is_above(known.mark):
            worst = known
    return worst


def is_ended_by_budget(session: Session) -> bool:
    """Return whether the reason the session knows for its end is a budget."""
    return any(session.why == known.text for known in session.budgets)


def find_spent(session: Session, handoff: Handoff) -> str:
    """Return the message of the used-up budget that began the handoff; empty if something else did."""
    return handoff.why if any(handoff.why == known.text for known in session.budgets if known.text) else ""
