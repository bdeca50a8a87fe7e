"""Decide what follows from a full context, a near limit or a used-up budget."""

from collections.abc import Sequence
from datetime import datetime

from agent_relay.domain.effects import (
    AwaitQuiet,
    Compact,
    Draft,
    DraftPacket,
    NoteRest,
    ShowMessage,
    StopLeg,
    TellContext,
)
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.events.standby import StandbyStarting
from agent_relay.domain.inputs import BudgetsCounted, CompactWished, ContextFilled, HandoffAsked
from agent_relay.domain.limits import Context, ContextWishes, Level, Mark, Spending
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Leg, Session, Terms
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import has_passed, is_later, replace
from agent_relay.session import transitions
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.handoffs import HEADLESS, begin_handoff, replace_agent
from agent_relay.session.limits.standbys import begin_standby
from agent_relay.session.requests import roll_back_first
from agent_relay.session.views.messages import render_fill

_TOLD = frozenset({Level.ADVISE, Level.ACT})


def find_level(used: int, room: int, wishes: ContextWishes) -> Level:
    """Return the level, between the user's marks, that `used` tokens of `room` (0 unknown) have reached.

    A ceiling puts the mark `act` at a number of tokens, where that is lower, and the others in proportion.
    """
    whole = wishes.ceiling * 100 / wishes.act if wishes.ceiling else 0.0
    whole = min(whole, float(room)) if whole and room else whole or float(room)
    if not whole:
        return Level.UNKNOWN
    percent = 100 * used / whole
    for mark, level in ((wishes.act, Level.ACT), (wishes.draft, Level.DRAFT), (wishes.advise, Level.ADVISE)):
        if percent >= mark:
            return level
    return Level.MIDDLE if percent >= wishes.rearm else Level.LOW


def filled(session: Session, news: ContextFilled, world: DecisionContext) -> Outcome:
    """Journal a reading of the running leg's context, and act on it.

    One that is not newer than the last one noted is an old record read again, and is ignored.
    """
    leg, before = session.living_leg, session.context
    if (
        leg is None
        or leg.id != news.leg
        or world.context.mode == "off"
        or _is_old(before, leg, news.at, world.now)
    ):
        return NOTHING
    level = find_level(news.used, news.room, world.context)
    if level in (Level.UNKNOWN, before.level):
        return NOTHING
    noted = work.ContextNoted(leg.id, news.used, news.room, level, news.at.isoformat(), news.model)
    after = replace(session, context=transitions.note_context(before, noted, news.at))
    told = {one for one in _TOLD if not one.is_above(level) and one.is_above(before.peak)}
    show = (ShowMessage(leg.id),) if told and session.handoff is None else ()
    said = Outcome((noted,), (*show, *_tell_agent(leg, before, level)))
    return said.then(turn_ended(after, world))


def _tell_agent(leg: Leg, before: Context, level: Level) -> tuple[TellContext, ...]:
    """Tell the agent of each mark once on the way up; take back what it has not read yet when it is low."""
    is_news = not Level.ADVISE.is_above(level) and level.is_above(before.peak)
    return (TellContext(leg.id),) if is_news or level is Level.LOW else ()


_HAND_OVER = "You can ask for a handoff to another agent with the tool handoff"


def wish_compact(session: Session, wished: CompactWished, world: DecisionContext) -> Outcome:
    """Journal the agent's wish to be compacted: done after its turn, or up to the user, by `context.mode`.

    Raises WrongUseError if the user wants full contexts handed over or left alone, or one of this session was
    relieved within the cooldown, and if the agent works without a screen.
    """
    leg, mode, context = session.living_leg, world.context.mode, session.context
    if leg is None or leg.id != wished.leg or session.state not in LIVE:
        raise WrongUseError("this agent is no longer at work in its session")
    if leg.headless:
        raise WrongUseError("without a screen no context is compacted", hint=_HAND_OVER)
    if mode not in {"compact", "ask"}:
        raise WrongUseError(
            f'the user set context.mode to "{mode}", so relay compacts nothing', hint=_HAND_OVER
        )
    if context.is_wish_open:
        raise WrongUseError("that is requested already")
    if context.relieved_at is not None and not has_passed(
        world.context.cooldown, context.relieved_at, world.now
    ):
        raise WrongUseError("a context of this session was relieved a short while ago", hint=_HAND_OVER)
    body = events.ContextWished(leg.id, wished.why, asks=mode == "ask")
    after = replace(session, context=replace(context, wish="ask" if body.asks else "compact", is_spent=False))
    return Outcome((body,), (ShowMessage(leg.id),)).then(turn_ended(after, world))


def _is_old(context: Context, leg: Leg, at: datetime, now: datetime) -> bool:
    relieved = context.relieved_at
    is_known = context.read_at is not None and not is_later(at, context.read_at, now)
    return at < leg.starting_at or is_known or (relieved is not None and not is_later(at, relieved, now))


def turn_ended(session: Session, world: DecisionContext) -> Outcome:
    """Begin what waited for a turn's end: a draft of the handoff document, then relief once nobody types."""
    leg = session.living_leg
    if leg is None or session.state is not State.READY or session.handoff is not None:
        return NOTHING
    cause = _find_cause(session, leg, world)
    draft = Outcome((work.DraftBegun(leg.id, cause),), (Draft(leg.id),)) if cause else NOTHING
    waits = Outcome((), (AwaitQuiet(leg.id),)) if _is_due(session, world) else NOTHING
    return draft.then(waits)


def quiet(session: Session, leg_id: str, world: DecisionContext) -> Outcome:
    """Hand the leg over, or tell its agent to compact, now that it is ready and nobody is typing."""
    leg = session.living_leg
    is_ready = session.state is State.READY and session.handoff is None
    if leg is None or leg.id != leg_id or not is_ready or not _is_due(session, world):
        return NOTHING
    if world.context.mode == "compact":
        return Outcome((work.ContextCompacting(leg.id),), (Compact(leg.id),))
    successor, skipped = _choose(session, world, transitions.inherit_terms(session).needs)
    return _hand_over(session, successor, world, skipped=skipped) if successor else NOTHING


def relieve_turn(session: Session, world: DecisionContext) -> Outcome:
    """Return the handoff a headless turn begins with if the last agent's context is full; else nothing."""
    if world.context.mode != "handoff" or not _is_due(session, world):
        return NOTHING
    successor, skipped = _choose(session, world, (HEADLESS,))
    return _hand_over(session, successor, world, skipped=skipped) if successor else NOTHING


def spared(session: Session, leg_id: str) -> Outcome:
    """Wait for the next quiet moment: somebody had begun to type."""
    leg = session.living_leg
    if leg is None or leg.id != leg_id:
        return NOTHING
    return Outcome((work.ContextSpared(leg_id),), (AwaitQuiet(leg_id),))


def relieve_asked(session: Session, asked: HandoffAsked, terms: Terms, world: DecisionContext) -> Outcome:
    """Return the handoff asked for without a name if the context at work is full; else nothing."""
    is_full = world.context.mode != "off" and not Level.ADVISE.is_above(session.context.level)
    successor, skipped = _choose(session, world, terms.needs) if is_full else ("", ())
    if not successor or session.living_leg is None:
        return NOTHING
    return _hand_over(
        session,
        successor,
        world,
        focus=asked.focus,
        skipped=skipped,
        terms=terms,
        digest=asked.digest,
    )


def _hand_over(
    session: Session,
    successor: str,
    world: DecisionContext,
    *,
    skipped: tuple[str, ...],
    focus: str = "",
    terms: Terms | None = None,
    digest: bool = False,
) -> Outcome:
    model = session.legs[-1].model if successor == session.agent else ""
    return begin_handoff(
        session,
        successor,
        "context",
        world,
        why=f"its context is {render_fill(session.context)}",
        focus=focus,
        skipped=skipped,
        model=model,
        terms=terms,
        digest=digest,
    )


def _is_due(session: Session, world: DecisionContext) -> bool:
    """Return whether the running leg's context should be relieved as soon as possible."""
    context, wishes = session.context, world.context
    is_wished = context.wish == "compact" == wishes.mode
    is_full = context.level is Level.ACT and wishes.mode in {"handoff", "compact"}
    if context.is_spent or not (is_full or is_wished):
        return False
    return context.relieved_at is None or has_passed(wishes.cooldown, context.relieved_at, world.now)


def _find_cause(session: Session, leg: Leg, world: DecisionContext) -> str:
    """Return why a handoff document is to be drafted now; empty if none is.

    An agent is asked once, and again only for a context that filled up anew after the cooldown.
    """
    context = session.context
    drafted = context.drafted_at
    rests = drafted is None or has_passed(world.context.cooldown, drafted, world.now)
    is_open = world.context.mode == "handoff" and not context.is_spent and not context.is_drafted
    if is_open and rests and not Level.DRAFT.is_above(context.level):
        return "context"
    is_near = world.draft_near_limit and session.near is not None and leg.was_busy
    return "near-limit" if is_near and not context.has_drafted else ""


def prepare_successor(session: Session, leg: Leg, world: DecisionContext) -> Outcome:
    """Choose the agent to take over near a limit, have a packet drafted for it, and start it if wanted.

    Without a screen nobody waits for the next agent: there none is started ahead.
    """
    if session.handoff is not None:
        return NOTHING
    turn = session.open_turn
    others = turn.others if turn is not None else ()
    roster = tuple(name for name in session.roster if name not in others)
    needs = (*transitions.inherit_terms(session).needs, *((HEADLESS,) if leg.headless else ()))
    choice = world.choose(roster, current=session.agent, needs=needs)
    chosen = Outcome((work.SuccessorChosen(leg.id, choice.successor, choice.skipped),))
    if not choice.successor or not leg.was_busy:
        return chosen
    drafted = chosen.then(Outcome((), (DraftPacket(leg.id, choice.successor),)))
    return drafted.then(begin_standby(session, leg, choice.successor, world))


def keep_prepared(session: Session, leg: Leg, world: DecisionContext) -> Outcome:
    """Start another standby if the limit is still near and the last one is gone."""
    until = parse_moment(session.near.until) if session.near is not None else None
    if session.near is None or (until is not None and until <= world.now):
        return NOTHING
    prepared = prepare_successor(session, leg, world)
    is_begun = any(isinstance(body, StandbyStarting) for body in prepared.bodies)
    return prepared if is_begun else NOTHING


def _choose(session: Session, world: DecisionContext, needs: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return who takes over, and why others were skipped; empty if even the agent at work could not start."""
    wanted = world.context.to
    others = tuple(name for name in session.roster if name != session.agent)
    order = {"same": (), "next": others}.get(wanted, (wanted,))
    names = tuple(dict.fromkeys((*order, session.agent, *others)))
    choice = world.ignore_full(session.agent).choose(names, needs=needs)
    return choice.successor, choice.skipped


_AT_WORK = frozenset({State.BUSY, State.ASKING})
_SCOPE = "budget"


def note_counted(session: Session, counted: BudgetsCounted, world: DecisionContext) -> Outcome:
    """Journal what a count found that is new, and act on the budgets that are due."""
    leg = session.living_leg
    if leg is None or leg.id != counted.leg:
        return NOTHING
    fresh = [
        found
        for found in counted.found
        if transitions.is_budget_news(transitions.find_spending(session, found.budget), found)
    ]
    noted = tuple(
        work.BudgetNoted(leg.id, one.budget, one.mark, one.text, one.agent, one.then, one.period, one.until)
        for one in fresh
    )
    names = {one.budget for one in fresh}
    after = replace(
        session, budgets=(*(known for known in session.budgets if known.budget not in names), *fresh)
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


def apply_quietly(session: Session, leg_id: str, world: DecisionContext) -> Outcome:
    """Act on a used-up budget now that nobody is typing; do nothing if none is due."""
    leg = session.living_leg
    if leg is None or leg.id != leg_id or session.state is not State.READY:
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
        and transitions.is_budget_of(known, leg.agent)
        and transitions.is_budget_current(known, world.now)
        and (leg.headless or not known.is_done)
    ]
    return max(due, key=lambda known: known.then == "stop", default=None)


def _apply(session: Session, leg: Leg, due: Spending, world: DecisionContext) -> Outcome:
    applied = work.BudgetApplied(leg.id, due.budget, due.period)
    if due.then == "stop":
        return Outcome((applied, events.SessionStopping(due.text)), (StopLeg(leg.id),))
    until = parse_moment(due.until)
    rest = (NoteRest(leg.agent, _SCOPE, until, due.text),) if until is not None else ()
    known = _leave_out(world, [due])
    rolled = roll_back_first(session, known)
    after = rolled if rolled.bodies else replace_agent(session, known, reason="rate_limit", why=due.text)
    return Outcome((applied,), rest).then(after)


def _leave_out(world: DecisionContext, spent: list[Spending]) -> DecisionContext:
    """Return `world` with the budgets' agents resting until the budgets' day is over."""
    availability = dict(world.availability)
    for one in spent:
        state = availability.get(one.agent)
        if state is not None:
            until = parse_moment(one.until)
            availability[one.agent] = replace(
                state, resting=True, rests_until=until, assumed=False, scope=_SCOPE
            )
    return replace(world, availability=availability)
