"""Decide what follows from an agent's tool calls: hand over, accept, judge, note.

An agent at work is not stopped in the middle of its turn: what it asks for begins when the turn is over.
"""

from agent_relay.domain.effects import AwaitQuiet, Effect, ShowMessage
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.inputs import AcceptSaid, CloseAsked, HandoffWished, NoteSaid, VerdictSaid
from agent_relay.domain.protocol.handoff_report import HandoffReport
from agent_relay.domain.session import AgentNote, Handoff, HandoffRequest, Leg, Session, Step, Terms
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import replace
from agent_relay.session import handoffs, interventions
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.transitions import inherit_terms

_NOT_DONE = {"failed": "could not do it", interventions.REJECTED: "rejected it"}
_OVER = "this agent is no longer at work in its session"


def request_handoff(session: Session, asked: HandoffWished, world: DecisionContext) -> Outcome:
    """Journal the request; it is acted on when the turn is over.

    Raises WrongUseError if the agent cannot ask for it now, NobodyAvailableError if the other one cannot take
    over.
    """
    leg = _get_leg(session, asked.leg)
    if asked.agent == leg.agent:
        raise WrongUseError(f"{leg.agent} is already at work in this session", hint="Name another agent")
    if session.request is not None:
        raise WrongUseError(
            f"a handoff to {session.request.to_agent} is already requested; it begins when this turn is over"
        )
    if session.handoff is not None and session.handoff.leg != leg.id:
        raise WrongUseError(f"a handoff to {session.handoff.to_agent} is under way")
    _check_turn(session)
    choice = world.choose((asked.agent,), needs=_list_needs(session, leg))
    if not choice.successor:
        raise NobodyAvailableError(choice.skipped[0], hint="Call plan to see which agents can take over")
    requested = work.HandoffRequested(
        world.handoff_id,
        leg.id,
        asked.agent,
        asked.title,
        asked.text,
        asked.next_step,
        asked.priority,
        files=asked.files,
    )
    return Outcome((requested,), _tell(session, leg))


def say_verdict(session: Session, said: VerdictSaid, world: DecisionContext) -> Outcome:
    """Judge the handoff that started the agent; unless completed, its rollback agent follows after the turn.

    Evidence is journalled at once. Raises WrongUseError if no handoff brought the agent, if it was judged
    before, or if the agent rejects what it accepted.
    """
    leg, handoff = _get_own(session, said.leg)
    closing = CloseAsked(
        handoff.id, said.verdict, said.note, by=leg.agent, report=said.report, checked=said.checked
    )
    if said.verdict == interventions.REJECTED and handoff.id in session.accepted:
        raise WrongUseError("this agent accepted the handoff already", hint="Say that it failed: call fail")
    if said.verdict == "completed" or not handoff.terms.rollback or handoff.id in session.closed:
        return interventions.close(session, closing, world)
    if session.request is not None:
        raise WrongUseError(f"a handoff to {session.request.to_agent} is already requested")
    _check_turn(session)
    title = f"{leg.agent} {_NOT_DONE[said.verdict]}"
    report = said.report
    requested = work.HandoffRequested(
        world.handoff_id,
        leg.id,
        handoff.terms.rollback,
        title,
        said.note,
        closes=handoff.id,
        verdict=said.verdict,
        deliverables=report.deliverables,
        completed=report.completed,
        incomplete=report.incomplete,
        questions=report.questions,
        suggested_next=report.suggested_next,
    )
    evidence = interventions.list_evidence(handoff, closing)
    blockers = interventions.list_blockers(handoff.id, report)
    return Outcome((*evidence, *blockers, requested), _tell(session, leg))


def accept(session: Session, said: AcceptSaid) -> Outcome:
    """Journal, once, that the agent accepted the handoff that started it."""
    leg, handoff = _get_own(session, said.leg)
    if handoff.id in session.accepted:
        return NOTHING
    return Outcome((work.HandoffAccepted(handoff.id, leg.id, said.note),))


def keep_note(session: Session, said: NoteSaid) -> Outcome:
    """Journal the agent's note on its work."""
    return Outcome((work.AgentNoted(_get_leg(session, said.leg).id, said.text, said.next_step),))


def find_own_handoff(session: Session, leg: str) -> Handoff | None:
    """Return the handoff that started the agent of `leg`; `None` if none did."""
    known = (*session.done, *((session.handoff,) if session.handoff is not None else ()))
    return next((one for one in reversed(known) if one.leg == leg), None)


def await_turn_end(session: Session) -> Outcome:
    """Wait for a moment to begin the requested handoff; do nothing if there is none."""
    leg, request = session.living_leg, session.request
    if leg is None or request is None or request.leg != leg.id or session.state is not State.READY:
        return NOTHING
    return Outcome((), (AwaitQuiet(leg.id),))


def begin_requested(session: Session, leg_id: str, world: DecisionContext) -> Outcome:
    """Begin the requested handoff, now that the agent waits for a prompt and nobody is typing."""
    leg, request = session.living_leg, session.request
    if leg is None or request is None or not leg.id == leg_id == request.leg:
        return NOTHING
    if session.state is not State.READY or session.handoff is not None:
        return NOTHING
    return _begin(session, leg, request, world)


def begin_headless(session: Session, leg: Leg, world: DecisionContext) -> Outcome:
    """Return the handoff a headless agent requested in the turn that has just ended, if any."""
    request = session.request
    if request is None or request.leg != leg.id or session.state not in LIVE or session.open_turn is None:
        return NOTHING
    return _begin(session, leg, request, world)


def _begin(session: Session, leg: Leg, request: HandoffRequest, world: DecisionContext) -> Outcome:
    own = replace(world, handoff_id=request.id)
    if request.closes:
        closing = CloseAsked(
            request.closes, request.verdict, request.note, by=leg.agent, report=request.report
        )
        closed = interventions.close(session, closing, own)
        # It was judged with a reason for its rollback agent to stay away, if that cannot come.
        is_begun = any(isinstance(body, work.HandoffBegun) for body in closed.bodies)
        return (
            closed
            if is_begun
            else _withdraw(request, leg, "its rollback agent cannot take over").then(closed)
        )
    choice = world.choose((request.to_agent,), needs=_list_needs(session, leg))
    begun = NOTHING
    if choice.successor:
        terms, why = _build_terms(session, request), f"{leg.agent} asked for it"
        begun = handoffs.begin_handoff(session, request.to_agent, "manual", own, why=why, terms=terms)
    if begun.bodies:
        return begun
    why_not = choice.skipped[0] if choice.skipped else handoffs.find_fault(request.to_agent, world)
    return _withdraw(request, leg, why_not)


def _withdraw(request: HandoffRequest, leg: Leg, why: str) -> Outcome:
    return Outcome((work.HandoffWithdrawn(request.id, why),), (ShowMessage(leg.id),))


def _build_terms(session: Session, request: HandoffRequest) -> Terms:
    """Return the open expectations, with the agent's priority; no agent is its own rollback agent."""
    terms = inherit_terms(session)
    priority = request.priority or terms.priority
    rollback = "" if terms.rollback == request.to_agent else terms.rollback
    questions = terms.questions if rollback else ()
    return replace(terms, priority=priority, rollback=rollback, questions=questions)


def _list_needs(session: Session, leg: Leg) -> tuple[str, ...]:
    """List what the successor must be able to do."""
    return (*inherit_terms(session).needs, *((handoffs.HEADLESS,) if leg.headless else ()))


def _tell(session: Session, leg: Leg) -> tuple[Effect, ...]:
    """Return the effects that show the request, and begin it if the turn is over already."""
    if leg.headless:
        return ()
    waits = (AwaitQuiet(leg.id),) if session.state is State.READY else ()
    return (ShowMessage(leg.id), *waits)


def _check_turn(session: Session) -> None:
    """Raise WrongUseError if the headless turn under way is not the agent's own to hand over."""
    turn = session.open_turn
    if turn is not None and turn.seat:
        raise WrongUseError("in a chat the agents take turns by themselves", hint="Say it in your answer")
    if turn is not None and turn.is_spent:
        raise WrongUseError("no further agent may take this turn", hint="Say in your answer what is left")


def _get_leg(session: Session, leg_id: str) -> Leg:
    leg = session.living_leg
    if leg is None or leg.id != leg_id or session.state not in LIVE:
        raise WrongUseError(_OVER)
    return leg


def _get_own(session: Session, leg_id: str) -> tuple[Leg, Handoff]:
    """Return the agent's leg, and the handoff that started it. Raise WrongUseError if none did."""
    leg = _get_leg(session, leg_id)
    handoff = find_own_handoff(session, leg.id)
    if handoff is None or handoff.step is not Step.DELIVERED:
        raise WrongUseError("this agent was not started by a handoff, so it has none to accept or judge")
    return leg, handoff


def fold_said(
    session: Session,
    body: work.HandoffRequested | work.HandoffWithdrawn | work.HandoffAccepted | work.AgentNoted,
    event: events.Event,
) -> Session:
    """Return the session after its agent said something of its work, or what it asked for was dropped."""
    match body:
        case work.HandoffRequested():
            parts = (body.completed, body.incomplete, (), body.questions, body.suggested_next)
            report = HandoffReport(body.deliverables, (), *parts)
            request = HandoffRequest(
                body.handoff,
                body.leg,
                body.to_agent,
                body.title,
                event.at,
                body.priority,
                body.closes,
                body.verdict or "failed",
                body.text,
                report,
            )
            note = AgentNote(body.leg, body.text, event.at, body.next_step, body.files)
            return replace(session, request=request, note=note)
        case work.HandoffWithdrawn(handoff):
            is_its = session.request is not None and session.request.id == handoff
            return replace(session, request=None) if is_its else session
        case work.HandoffAccepted(handoff):
            return replace(session, accepted=(*session.accepted, handoff))
        case work.AgentNoted(leg, text, next_step):
            return replace(session, note=AgentNote(leg, text, event.at, next_step))


def mark_note(session: Session, noted_at: str) -> Session:
    """Return the session whose agent's note of that moment is in a checkpoint."""
    note = session.note
    if note is None or note.at.isoformat() != noted_at:
        return session
    return replace(session, note=replace(note, is_kept=True))


def drop_request(session: Session, leg: str) -> Session:
    """Return the session without what the agent of `leg`, which is over, asked for."""
    is_its = session.request is not None and session.request.leg == leg
    return replace(session, request=None) if is_its else session
