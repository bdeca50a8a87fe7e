"""Translate journal events and agent output into what followers of a headless turn are sent."""

from collections.abc import Sequence
from datetime import tzinfo

from agent_relay.domain.events.session import Event, LegEnded, LegNamed, LegStarting, SignalSeen
from agent_relay.domain.events.work import BudgetNoted, HandoffFailed, PacketPublished, TurnBegun
from agent_relay.domain.limits import Mark, Scope, Spending
from agent_relay.domain.protocol import run_output
from agent_relay.domain.session import Leg, Session
from agent_relay.domain.state import State
from agent_relay.session.fold import fold_events
from agent_relay.session.turns.output import OutputItem
from agent_relay.session.views import messages


def report_event(before: Sequence[Event], event: Event, zone: tzinfo) -> run_output.RunEvent | None:  # noqa: PLR0911 - one arm an event
    """Return the line for `event`, `None` for none; `before` is the journal up to and including it."""
    at = event.at.isoformat()
    match event.body:
        case TurnBegun() as body:
            return _report_begun(fold_events(before), body, at)
        case LegStarting() as body if body.headless:
            return _report_leg(before, body, at)
        case LegNamed(leg, native_id) if native_id and not _was_named(before[:-1], event.body):
            return run_output.Named(leg=leg, native_id=native_id)
        case SignalSeen() as body if body.decides:
            return run_output.SignalTold(
                leg=body.leg,
                agent=body.agent,
                kind=body.kind,
                scope=Scope(body.scope).value,
                resets_at=body.until,
                text=body.text,
                at=at,
            )
        case BudgetNoted() as body:
            return _report_budget(body, at)
        case PacketPublished():
            return _report_handoff(fold_events(before), zone, at)
        case HandoffFailed(handoff, _, why):
            return run_output.HandoffBroke(handoff=handoff, why=why, at=at)
        case LegEnded(leg, how, status):
            session = fold_events(before)
            agents = [known.agent for known in session.legs if known.id == leg] if session is not None else []
            return run_output.LegOver(
                leg=leg, agent=agents[0] if agents else "", how=how, status=status, at=at
            )
        case _:
            return None


def _report_leg(before: Sequence[Event], body: LegStarting, at: str) -> run_output.LegBegan:
    session = fold_events(before) if body.instead else None
    turn = session.turn if session is not None else None
    return run_output.LegBegan(
        leg=body.leg,
        agent=body.agent,
        model=body.model,
        resumes=body.resumes,
        asked=turn.agent if turn is not None else "",
        why=body.instead,
        at=at,
    )


def _report_begun(session: Session | None, body: TurnBegun, at: str) -> run_output.Began:
    return run_output.Began(
        session=session.id if session is not None else "",
        agent=body.agent,
        folder=messages.session_folder(session) if session is not None else "",
        at=at,
        message=body.message or None,
    )


def report_agent_output(said: OutputItem, leg: Leg) -> run_output.RunEvent | None:  # noqa: PLR0911 - one arm a meaning
    """Return the line for what the agent said; how its turn ended comes from the journal."""
    match said.means:
        case "text" | "thought" if said.text:
            kind = run_output.Text if said.means == "text" else run_output.Thought
            return kind(leg=leg.id, agent=leg.agent, text=said.text, more=said.is_piece)
        case "tool":
            return run_output.ToolCalled(
                leg=leg.id, agent=leg.agent, name=said.name, call=said.call, input=said.text, about=said.about
            )
        case "result":
            return run_output.ToolAnswered(
                leg=leg.id, agent=leg.agent, call=said.call, is_error=said.is_failure, output=said.text
            )
        case "edit":
            return run_output.FileEdited(
                leg=leg.id, agent=leg.agent, call=said.call, path=said.name, diff=said.text
            )
        case "plan" if said.steps:
            return run_output.PlanTold(leg=leg.id, agent=leg.agent, whole=said.is_whole, steps=said.steps)
        case "usage":
            return run_output.UsageTold(leg=leg.id, agent=leg.agent, tokens=dict(said.tokens), cost=said.cost)
        case _:
            return None


def report_end(session: Session, zone: tzinfo, *, sign_in: str = "") -> run_output.Ended | None:
    """Report how the newest headless turn ended; `None` while it goes on.

    `sign_in` is the command that signs in to its agent, for the hint.
    """
    turn = session.turn
    if turn is None:
        return None
    is_held = session.state is State.RESTING and session.living_leg is None
    is_over = session.state is State.ENDED or (session.state is State.READY and session.living_leg is None)
    if not is_over and not is_held:
        return None
    outcome = turn.outcome or ("resting" if is_held else "stopped")
    is_resting = outcome == "resting"
    render = messages.render_seat_line if turn.seat else messages.render_rest_line
    return run_output.Ended(
        session=session.id,
        agent=session.agent or turn.agent,
        outcome=outcome,
        why=turn.why,
        resets_at=session.rested_until if is_resting else "",
        assumed=is_resting and session.reset_assumed,
        skipped=session.skipped if is_resting else (),
        message=render(session, zone) if is_resting else "",
        never_began=turn.never_began or None,
        hint=messages.render_sign_in(session.agent, sign_in)
        if outcome == "failed" and session.refusal
        else None,
        refused=turn.refused,
    )


def _report_budget(body: BudgetNoted, at: str) -> run_output.BudgetTold | None:
    """Report the budget; `None` if it ends the turn or hands it over: that report carries its reason."""
    match body.mark:
        case "uncounted" | "unpriced" | "warn" as mark:
            pass
        case "spent" as mark if body.then == "warn":
            pass
        case _:
            return None
    known = Spending(body.budget, Mark(mark), body.text, body.agent, body.then)
    message = messages.render_spending_line(known)
    return run_output.BudgetTold(leg=body.leg, budget=body.budget, mark=mark, message=message, at=at)


def _was_named(before: Sequence[Event], named: LegNamed) -> bool:
    """Return whether the journal already had the leg's native session."""
    known = [line.body for line in before if isinstance(line.body, LegNamed) and line.body.leg == named.leg]
    return bool(known) and known[-1].native_id == named.native_id


def _report_handoff(session: Session | None, zone: tzinfo, at: str) -> run_output.HandedOver | None:
    handoff = session.handoff if session is not None else None
    if session is None or handoff is None:
        return None
    return run_output.HandedOver(
        handoff=handoff.id,
        from_agent=handoff.from_agent,
        to_agent=handoff.to_agent,
        reason=handoff.reason,
        packet=f"{messages.session_folder(session)}/{handoff.text_path}",
        message=messages.render_handoff_line(session, handoff, zone),
        at=at,
    )
