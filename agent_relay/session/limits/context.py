"""Decide what follows as a context fills up: warn, draft, hand over or compact, once each."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from agent_relay.domain.context import Context, ContextWishes, Level
from agent_relay.domain.effects import AwaitQuiet, Compact, Draft, ShowMessage
from agent_relay.domain.events.usage import ContextCompacting, ContextNoted, ContextSpared, DraftBegun
from agent_relay.domain.inputs import CompactSkipped, ContextFilled, HandoffAsked, LegQuiet
from agent_relay.domain.session import Leg, Session, Terms
from agent_relay.domain.state import State
from agent_relay.domain.values.elapsed import has_passed, is_later
from agent_relay.session.handoff.lifecycle import HEADLESS, begin_handoff
from agent_relay.session.lineage import inherit_terms
from agent_relay.session.outcome import NOTHING, DecisionContext, Outcome
from agent_relay.session.policy import choose_successor
from agent_relay.session.views.messages import render_fill
from agent_relay.session.warnings import note_context

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


def note_fill(
    session: Session, happened: ContextFilled | LegQuiet | CompactSkipped, world: DecisionContext
) -> Outcome:
    """Decide what follows if a context passed a mark, or a quiet moment to act came or was missed."""
    match happened:
        case LegQuiet(leg):
            return _quiet(session, leg, world)
        case CompactSkipped(leg):
            return _spared(session, leg)
        case _:
            return _filled(session, happened, world)


def _filled(session: Session, filled: ContextFilled, world: DecisionContext) -> Outcome:
    """Journal a reading of the running leg's context, and act on it.

    One that is not newer than the last one noted is an old record read again, and is ignored.
    """
    leg, before = session.living_leg, session.context
    if (
        leg is None
        or leg.id != filled.leg
        or world.context.mode == "off"
        or _is_old(before, leg, filled.at, world.now)
    ):
        return NOTHING
    level = find_level(filled.used, filled.room, world.context)
    if level in (Level.UNKNOWN, before.level):
        return NOTHING
    noted = ContextNoted(leg.id, filled.used, filled.room, level, filled.at.isoformat(), filled.model)
    after = replace(session, context=note_context(before, noted, filled.at))
    told = {one for one in _TOLD if not one.is_above(level) and one.is_above(before.peak)}
    said = Outcome((noted,), (ShowMessage(leg.id),) if told and session.handoff is None else ())
    return said.then(turn_ended(after, world))


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
    draft = Outcome((DraftBegun(leg.id, cause),), (Draft(leg.id),)) if cause else NOTHING
    waits = Outcome((), (AwaitQuiet(leg.id),)) if _is_due(session, world) else NOTHING
    return draft.then(waits)


def _quiet(session: Session, leg_id: str, world: DecisionContext) -> Outcome:
    """Hand the leg over, or tell its agent to compact, now that it is ready and nobody is typing."""
    leg = session.living_leg
    is_ready = session.state is State.READY and session.handoff is None
    if leg is None or leg.id != leg_id or not is_ready or not _is_due(session, world):
        return NOTHING
    if world.context.mode == "compact":
        return Outcome((ContextCompacting(leg.id),), (Compact(leg.id),))
    successor, skipped = _choose(session, world, inherit_terms(session).needs)
    return _hand_over(session, successor, world, skipped=skipped) if successor else NOTHING


def relieve_turn(session: Session, world: DecisionContext) -> Outcome:
    """Return the handoff a headless turn begins with if the last agent's context is full; else nothing."""
    if world.context.mode != "handoff" or not _is_due(session, world):
        return NOTHING
    successor, skipped = _choose(session, world, (HEADLESS,))
    return _hand_over(session, successor, world, skipped=skipped) if successor else NOTHING


def _spared(session: Session, leg_id: str) -> Outcome:
    """Wait for the next quiet moment: somebody had begun to type."""
    leg = session.living_leg
    if leg is None or leg.id != leg_id:
        return NOTHING
    return Outcome((ContextSpared(leg_id),), (AwaitQuiet(leg_id),))


def relieve_asked(session: Session, asked: HandoffAsked, terms: Terms, world: DecisionContext) -> Outcome:
    """Return the handoff asked for without a name if the context at work is full; else nothing."""
    is_full = world.context.mode != "off" and not Level.ADVISE.is_above(session.context.level)
    successor, skipped = _choose(session, world, terms.needs) if is_full else ("", ())
    if not successor or session.living_leg is None:
        return NOTHING
    return _hand_over(session, successor, world, focus=asked.focus, skipped=skipped, terms=terms)


def _hand_over(
    session: Session,
    successor: str,
    world: DecisionContext,
    *,
    skipped: tuple[str, ...],
    focus: str = "",
    terms: Terms | None = None,
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
    )


def _is_due(session: Session, world: DecisionContext) -> bool:
    """Return whether the running leg's context should be relieved as soon as possible."""
    context, wishes = session.context, world.context
    if wishes.mode not in {"handoff", "compact"} or context.level is not Level.ACT or context.is_spent:
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


def _choose(session: Session, world: DecisionContext, needs: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Return who takes over, and why others were skipped; empty if even the agent at work could not start."""
    wanted = world.context.to
    others = tuple(name for name in session.roster if name != session.agent)
    order = {"same": (), "next": others}.get(wanted, (wanted,))
    names = tuple(dict.fromkeys((*order, session.agent, *others)))
    choice = choose_successor(
        names, world.availability, current="", now=world.now, zone=world.zone, needs=needs
    )
    return choice.successor, choice.skipped
