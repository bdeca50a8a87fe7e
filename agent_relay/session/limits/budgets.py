"""Decide what follows when a budget is used up: warn, hand over or end the session, once each."""

from dataclasses import replace

from agent_relay.domain.budgets import Mark, Spending
from agent_relay.domain.effects import AwaitQuiet, NoteRest, ShowMessage, StopLeg
from agent_relay.domain.events.session import SessionStopping
from agent_relay.domain.events.usage import BudgetApplied, BudgetNoted
from agent_relay.domain.inputs import BudgetsCounted, LegQuiet
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values.moments import parse_moment
from agent_relay.session.handoff.lifecycle import replace_agent
from agent_relay.session.outcome import NOTHING, DecisionContext, Outcome
from agent_relay.session.warnings import find_spending, is_budget_current, is_budget_news, is_budget_of

_AT_WORK = frozenset({State.BUSY, State.ASKING})
_SCOPE = "budget"


def note_counted(session: Session, counted: BudgetsCounted, world: DecisionContext) -> Outcome:
    """Journal what a count found that is new, and act on the budgets that are due."""
    leg = session.living_leg
    if leg is None or leg.id != counted.leg:
        return NOTHING
    fresh = [found for found in counted.found if is_budget_news(find_spending(session, found.budget), found)]
    noted = tuple(
        BudgetNoted(leg.id, one.budget, one.mark, one.text, one.agent, one.then, one.period, one.until)
        for one in fresh
    )
    names = {one.budget for one in fresh}
    after = replace(
        session,
        budgets=(*(known for known in session.budgets if known.budget not in names), *fresh),
    )
    told = Outcome(noted, (ShowMessage(leg.id),) if fresh and session.handoff is None else ())
    return told.then(apply_budgets(after, world))


def note_spent(session: Session, world: DecisionContext) -> DecisionContext:
    """Return `world` with agents that used up a budget of this session resting: none takes it over again."""
    spent = [
        known
        for known in session.budgets
        if known.mark is Mark.SPENT and known.then == "handoff" and not known.until
    ]
    return _leave_out(world, spent)


def apply_budgets(session: Session, world: DecisionContext) -> Outcome:
    """Act on a budget that is used up, as soon as that is possible.

    An agent at work uses more: a session that is to end is ended at once then, a headless one always. All
    else waits for the end of the turn, and until nobody is typing.
    """
    leg = session.living_leg
    due = _find_due(session, leg, world) if leg is not None else None
    if leg is None or due is None:
        return NOTHING
    if leg.headless or (due.then == "stop" and session.state in _AT_WORK):
        return _apply(session, leg, due, world)
    return Outcome((), (AwaitQuiet(leg.id),)) if session.state is State.READY else NOTHING


def apply_quietly(session: Session, quiet: LegQuiet, world: DecisionContext) -> Outcome:
    """Act on a used-up budget now that nobody is typing; do nothing if none is due."""
    leg = session.living_leg
    if leg is None or leg.id != quiet.leg or session.state is not State.READY:
        return NOTHING
    due = _find_due(session, leg, world)
    return _apply(session, leg, due, world) if due is not None else NOTHING


def _find_due(session: Session, leg: Leg, world: DecisionContext) -> Spending | None:
    """Return the budget to act on now, those that end the session before those that hand over.

    After that has been done once, a person may go on all the same; in a headless turn it is done every time.
    """
    if session.handoff is not None or session.state not in LIVE:
        return None
    if leg.headless and session.open_turn is None:
        return None
    due = [
        known
        for known in session.budgets
        if known.mark is Mark.SPENT
        and known.then in ("stop", "handoff")
        and is_budget_of(known, leg.agent)
        and is_budget_current(known, world.now)
        and (leg.headless or not known.is_done)
    ]
    return max(due, key=lambda known: known.then == "stop", default=None)


def _apply(session: Session, leg: Leg, due: Spending, world: DecisionContext) -> Outcome:
    applied = BudgetApplied(leg.id, due.budget, due.period)
    if due.then == "stop":
        return Outcome((applied, SessionStopping(due.text)), (StopLeg(leg.id),))
    until = parse_moment(due.until)
    rest = (NoteRest(leg.agent, _SCOPE, until, due.text),) if until is not None else ()
    known = _leave_out(world, [due])
    after = replace_agent(session, known, reason="rate_limit", why=due.text)
    return Outcome((applied,), rest).then(after)


def _leave_out(world: DecisionContext, spent: list[Spending]) -> DecisionContext:
    """Return `world` with the budgets' agents resting until the budgets' day is over."""
    availability = dict(world.availability)
    for one in spent:
        state = availability.get(one.agent)
        if state is not None:
            until = parse_moment(one.until)
            availability[one.agent] = replace(state, resting=True, rests_until=until, scope=_SCOPE)
    return replace(world, availability=availability)
