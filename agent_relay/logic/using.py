"""What follows as an agent uses tokens: budgets come before full contexts, the way back before both."""

from dataclasses import replace

from agent_relay.domain.context_effect import Filled, Quiet, Spared
from agent_relay.domain.session import Session, State
from agent_relay.domain.spending_effect import Counted
from agent_relay.logic.context_window import note_fill, turn_ended
from agent_relay.logic.outcome import Outcome, World
from agent_relay.logic.returning import go_back
from agent_relay.logic.spending_acts import apply_budgets, apply_quietly, note_counted


def note_use(session: Session, happened: Filled | Quiet | Spared | Counted, world: World) -> Outcome:
    """What follows where a context or a budget passed a mark, or the moment to act on one has come."""
    match happened:
        case Counted():
            return note_counted(session, happened, world)
        case Quiet():
            applied = apply_quietly(session, happened, world)
            return applied if applied.bodies else note_fill(session, happened, world)
        case _:
            return note_fill(session, happened, world)


def end_turn(session: Session, world: World) -> Outcome:
    """What waited for a turn's end: the way back to a preferred agent, else a budget, else a full context."""
    back = go_back(session, world)
    if back.bodies:
        return back
    after = replace(session, state=State.READY)
    applied = apply_budgets(after, world)
    return applied if applied.effects else turn_ended(after, world)
