"""What the journal says of full contexts, near limits and used budgets.

The user is warned once for each window of a limit: a session remembers the warnings its user has seen. Fold
and messages both import this module, so it imports nothing but the domain.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from agent_relay.domain.events.session import Event, SignalSeen
from agent_relay.domain.events.work import (
    BudgetApplied,
    BudgetNoted,
    ContextCompacting,
    ContextNoted,
    ContextSpared,
    DraftBegun,
)
from agent_relay.domain.limits import Context, Level, Mark, Spending
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Handoff, Limit, Session

_LEVELS = frozenset(level.value for level in Level)


def note_context(context: Context, noted: ContextNoted, read_at: datetime) -> Context:
    """Return the context after a reading by its agent; one that is low again may be acted on anew."""
    level = Level(noted.level)
    is_low = level is Level.LOW
    peak = level if is_low or level.is_above(context.peak) else context.peak
    known = replace(context, used=noted.used, room=noted.room, level=level, peak=peak, read_at=read_at)
    return replace(known, is_spent=False, is_drafted=False) if is_low else known


def fold_context(
    context: Context, body: ContextNoted | ContextCompacting | ContextSpared | DraftBegun, event: Event
) -> Context:
    """Return the context after one more event; an event with invalid values changes nothing."""
    match body:
        case ContextNoted():
            read_at = parse_moment(body.read_at)
            if read_at is None or body.level not in _LEVELS:
                return context
            return note_context(context, body, read_at)
        case ContextCompacting():
            return replace(context, is_spent=True, relieved_at=event.at)
        case ContextSpared():
            # The cooldown of the relief before this one was over, or this would not have been tried.
            return replace(context, is_spent=False, relieved_at=None)
        case _:
            return replace(context, is_drafted=True, has_drafted=True, drafted_at=event.at)


def begin_context(context: Context, *, is_relief: bool) -> Context:
    """Return the context of a leg that begins, `is_relief` if the one before it was full.

    Such a leg has to be seen low first: if a fresh start is full at once, another one would be, too.
    """
    kept = Context(relieved_at=context.relieved_at, drafted_at=context.drafted_at)
    return replace(kept, is_spent=is_relief)


# Countdowns and clock times move the reset they imply by their rounding; usage windows are hours apart.
_SAME_WINDOW = timedelta(minutes=10)


def is_warning(body: SignalSeen) -> bool:
    """Return whether a seen signal says for certain that a limit is close."""
    return body.decides and body.scope == "warning"


def is_told(session: Session, body: SignalSeen, at: datetime) -> bool:
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
    return replace(session, near=None, warned=tuple(known for known in session.warned if _is_open(known, at)))


def _is_same(known: Limit, agent: str, model: str, until: str) -> bool:
    """Return whether a warning may be of the window of a known one: an unknown reset may be any."""
    if (known.agent, known.model) != (agent, model):
        return False
    one, other = parse_moment(known.until), parse_moment(until)
    return one is None or other is None or abs(one - other) <= _SAME_WINDOW


def _is_open(known: Limit, at: datetime) -> bool:
    until = parse_moment(known.until)
    return until is not None and until > at


def fold_spending(session: Session, body: BudgetNoted | BudgetApplied, event: Event) -> Session:
    """Return the session after one more event; an event with invalid values changes nothing."""
    known = find_spending(session, body.budget)
    if isinstance(body, BudgetApplied):
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
