"""How budgets stand, as the journal's lines tell it, and what a session's user reads about them."""

from dataclasses import replace
from datetime import datetime

from agent_relay.domain.event import Event
from agent_relay.domain.session import Handoff, Session
from agent_relay.domain.spending import Mark, Spending
from agent_relay.domain.spending_event import BudgetApplied, BudgetNoted
from agent_relay.logic.moments import parse_moment

_FOLLOWS = {
    ("warn", Mark.WARN): "",
    ("warn", Mark.SPENT): "It is yours to decide what follows",
    ("handoff", Mark.WARN): "When it is used up, another agent takes over",
    ("handoff", Mark.SPENT): "Another agent takes over at the end of this turn",
    ("stop", Mark.WARN): "When it is used up, the session ends",
    ("stop", Mark.SPENT): "The session ends",
}


def fold_spending(session: Session, body: BudgetNoted | BudgetApplied, event: Event) -> Session:
    """The session after one more line of the journal; a line that cannot be meant changes nothing."""
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
    """What the session knows of a budget."""
    return next((known for known in session.budgets if known.budget == budget), None)


def is_news(known: Spending | None, found: Spending) -> bool:
    """Whether the user is told of what was found: within a day, and in a session, a budget is only used more.

    One that cannot be counted is told of, too, and when it can be again, but for one that is used up.
    """
    if known is None or known.period != found.period:
        return found.mark is not Mark.OPEN
    if Mark.UNCOUNTED in {known.mark, found.mark}:
        return known.mark not in {found.mark, Mark.SPENT}
    return found.mark.is_above(known.mark)


def _with(session: Session, noted: Spending) -> Session:
    others = tuple(known for known in session.budgets if known.budget != noted.budget)
    return replace(session, budgets=(*others, noted))


def is_current(known: Spending, now: datetime) -> bool:
    """Whether its day is not over."""
    until = parse_moment(known.until)
    return until is None or until > now


def is_about(known: Spending, agent: str) -> bool:
    """Whether `agent` uses of it."""
    return known.agent in ("", agent)


def find_worst(session: Session, now: datetime) -> Spending | None:
    """The budget the agent at work has used most of, the newest of those; `None` where all are open."""
    found = [
        known
        for known in session.budgets
        if known.mark is not Mark.OPEN and is_current(known, now) and is_about(known, session.agent)
    ]
    worst: Spending | None = None
    for known in found:
        if worst is None or not worst.mark.is_above(known.mark):
            worst = known
    return worst


def is_ended_by_budget(session: Session) -> bool:
    """Whether the reason the session knows for its end is a budget."""
    return any(session.why == known.text for known in session.budgets)


def render_spending_line(known: Spending) -> str:
    """How a budget stands, and what follows."""
    follows = _FOLLOWS.get((known.then, known.mark), "")
    if known.is_done:
        follows = "It was acted on once, and is not again"
    return f"→ {capitalize(known.text)}{f'. {follows}' if follows else ''}"


def capitalize(text: str) -> str:
    """`text` as the beginning of a sentence."""
    return f"{text[:1].upper()}{text[1:]}"


def find_spent(session: Session, handoff: Handoff) -> str:
    """What was said of the used-up budget that began the handoff; empty where something else did."""
    return handoff.why if any(handoff.why == known.text for known in session.budgets if known.text) else ""
