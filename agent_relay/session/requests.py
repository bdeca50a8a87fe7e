"""Decide what follows from an agent's tool calls: hand over, accept, judge, note.

An agent at work is not stopped in the middle of its turn: what it asks for begins when the turn is over.
"""

from agent_relay.domain.effects import AwaitQuiet, Effect, PublishPacket, ShowMessage
from agent_relay.domain.errors import NobodyAvailableError, WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.inputs import AcceptSaid, CloseAsked, HandoffWished, NoteSaid, VerdictSaid
from agent_relay.domain.protocol.handoff_report import HandoffReport
from agent_relay.domain.session import AgentNote, Handoff, HandoffRequest, Leg, Session, Step, Terms
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import Asker, replace
from agent_relay.session import handoffs, interventions
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.transitions import inherit_terms

_NOT_DONE = {"failed": "could not do it", interventions.REJECTED: "rejected it"}
_JUDGED = "that handoff was judged already"
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
        raise NobodyAvailableError(
            f"cannot hand over ({choice.skipped[0]})", hint="Call plan to see which agents can take over"
        )
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
        handoff.id,
        said.verdict,
        said.note,
        by=leg.agent,
        report=said.report,
        checked=said.checked,
        asker=said.asker,
    )
    if said.verdict == interventions.REJECTED and handoff.id in session.accepted:
        raise WrongUseError("this agent accepted the handoff already", hint="Say that it failed: call fail")
    if said.verdict == "completed" or not handoff.terms.rollback or handoff.id in session.closed:
        return interventions.close(session, closing, world)
    if session.request is not None:
        raise WrongUseError(f"a handoff to {session.request.to_agent} is already requested")
    _check_turn(session)
    # An agent that judges a handoff has its packet, whatever its screen shows.
    confirmed = (work.HandoffConfirmed(handoff.id, leg.id),) if handoff is session.handoff else ()
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
    return Outcome((*confirmed, *evidence, *blockers, requested), _tell(session, leg))


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


def begin_at_end(
    session: Session, leg: Leg, ended: events.LegEnded, world: DecisionContext, *, is_done: bool
) -> Outcome:
    """Return the handoff the agent requested, which begins with the end of its leg; or why it does not.

    A rollback begins even if the turn is not done; anything else, only after a headless turn that `is_done`.
    Nothing if nothing was requested.
    """
    request = session.request
    if request is None or request.leg != leg.id or session.state not in LIVE:
        return NOTHING
    if not request.closes and not (is_done and session.open_turn is not None):
        return NOTHING
    asked = _begin(session, leg, request, world)
    begun = find_begun(asked)
    if begun is None:
        return Outcome(asked.bodies)
    stopped = work.PredecessorStopped(begun.handoff, leg.id)
    return Outcome((*asked.bodies, ended, stopped), (PublishPacket(begun.handoff),))


def roll_back_first(session: Session, world: DecisionContext) -> Outcome:
    """Return the rollback that waits for the end of a turn its agent cannot finish; nothing without one.

    Also nothing if the rollback agent cannot take over now.
    """
    leg, request = session.leg, session.request
    if leg is None or request is None or request.leg != leg.id or not request.closes:
        return NOTHING
    begun = _begin(session, leg, request, world)
    return begun if find_begun(begun) is not None else NOTHING


def keep_verdict(session: Session, outcome: Outcome) -> Outcome:
    """Return `outcome`, with the agent's verdict added if the waiting rollback will not happen."""
    request = session.request
    if request is None or not request.closes or _is_over(session, request.closes):
        return outcome
    if any(
        isinstance(body, work.HandoffClosed) and body.handoff == request.closes for body in outcome.bodies
    ):
        is_over = any(isinstance(body, work.HandoffBegun | work.HandoffWithdrawn) for body in outcome.bodies)
        late = work.HandoffWithdrawn(request.id, _JUDGED)
        return outcome if is_over else outcome.then(Outcome((late,)))
    why = next((why for body in outcome.bodies if (why := _find_obstacle(session, request, body))), "")
    if not why:
        return outcome
    closing = _build_closing(session, request)
    skipped = (f"{request.to_agent}: {why}",)
    closed = interventions.build_closed(closing, skipped)
    return Outcome((work.HandoffWithdrawn(request.id, why), closed)).then(outcome)


def _find_obstacle(session: Session, request: HandoffRequest, body: events.Body) -> str:
    """Return why the request is dropped with this event; empty if it is not."""
    match body:
        case work.HandoffBegun(to_agent=agent):
            return f"{agent} takes over first"
        case events.LegEnded(leg) if leg == request.leg:
            return f"{session.agent} ended before the turn was over"
        case _:
            return ""


def find_begun(outcome: Outcome) -> work.HandoffBegun | None:
    """Return the handoff that begins with the outcome; `None` for none."""
    return next((body for body in outcome.bodies if isinstance(body, work.HandoffBegun)), None)


def _is_over(session: Session, handoff: str) -> bool:
    """Return whether the handoff cannot be judged any more."""
    known = (*session.done, *((session.handoff,) if session.handoff is not None else ()))
    return handoff in session.closed or all(one.id != handoff for one in known)


def _build_closing(session: Session, request: HandoffRequest) -> CloseAsked:
    return CloseAsked(
        request.closes,
        request.verdict,
        request.note,
        by=session.agent,
        report=request.report,
        asker=request.asker,
    )


def _begin(session: Session, leg: Leg, request: HandoffRequest, world: DecisionContext) -> Outcome:
    own = replace(world, handoff_id=request.id)
    if request.closes and _is_over(session, request.closes):
        return _withdraw(request, leg, _JUDGED)
    if request.closes:
        closed = interventions.close(session, _build_closing(session, request), own)
        # It was judged with a reason for its rollback agent to stay away, if that cannot come.
        return (
            closed
            if find_begun(closed) is not None
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
                Asker(body.user, body.via),
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
