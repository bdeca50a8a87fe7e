"""Fold the events of a journal into the session they describe."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from agent_relay.domain.events.session import (
    Body,
    ClockWasSetBack,
    Event,
    LegAnswered,
    LegBusy,
    LegContinues,
    LegEnded,
    LegNamed,
    LegPrompted,
    LegReady,
    LegStarted,
    LegStarting,
    PromptSeen,
    ResumeAgreed,
    ReturnOffered,
    SessionCreated,
    SessionEnded,
    SessionMoved,
    SessionRested,
    SessionStopping,
    SessionWoke,
    SignalSeen,
    TaskDelivered,
    Unknown,
)
from agent_relay.domain.events.work import (
    BudgetApplied,
    BudgetNoted,
    ContextCompacting,
    ContextNoted,
    ContextSpared,
    DraftBegun,
    HandoffBegun,
    HandoffCancelled,
    HandoffClosed,
    HandoffConfirmed,
    HandoffFailed,
    HandoffRetried,
    PacketDelivered,
    PacketPublished,
    PacketSaved,
    PredecessorStopped,
    TurnBegun,
    TurnEnded,
)
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Handoff, Leg, Limit, Prompt, Session, Step, Terms
from agent_relay.domain.state import LIVE, State
from agent_relay.session.transitions import TRANSITIONS, count_leg, end_turn, find_due, fold_turn
from agent_relay.session.warnings import (
    begin_context,
    fold_context,
    fold_spending,
    forget_leg,
    is_warning,
    note_warning,
)


class ImpossibleEventError(AssertionError):
    """An event arrived in a state it cannot follow: a bug, never the user's fault."""


def fold_events(events: Iterable[Event]) -> Session | None:
    """Return the session a whole journal describes; `None` for a journal without its first event."""
    session: Session | None = None
    for event in events:
        session = fold_event(session, event)
    return session


def fold_event(session: Session | None, event: Event) -> Session | None:
    """Return the session after one more event; raise ImpossibleEventError if no transition allows it."""
    body = event.body
    if session is None:
        if not isinstance(body, SessionCreated):
            if isinstance(body, Unknown):
                return None
            raise ImpossibleEventError(f"{body.name} before session.created")
        return Session(
            body.session,
            body.root,
            body.cwd,
            event.at,
            event.at,
            roster=body.roster,
            task=body.task,
            number=event.number,
        )
    target = TRANSITIONS.get(type(body), {}).get(session.state)
    if target is None:
        raise ImpossibleEventError(f"{body.name} while {session.state}")
    if isinstance(body, SignalSeen) and body.decides and is_limit(body) and session.state in LIVE:
        target = State.LIMITED
    changed = replace(session, state=target, updated_at=event.at, number=event.number)
    if isinstance(body, SessionMoved):
        return replace(changed, root=body.root, cwd=body.cwd)
    return _apply(changed, body, event)


def is_limit(body: SignalSeen) -> bool:
    """Return whether a seen signal means that the agent will not answer until a reset."""
    return body.kind in {"limit", "silent-limit"} and body.scope in {"model", "account", "billing"}


def is_refusal(body: SignalSeen) -> bool:
    """Return whether a seen signal means that the agent is signed out or its key was refused."""
    return body.decides and body.scope == "auth"


def _apply(session: Session, body: Body, event: Event) -> Session:  # noqa: C901, PLR0911, PLR0912 - one arm an event
    match body:
        case LegStarting():
            return _begin_leg(session, body, event)
        case LegStarted(leg, holder_pid, child_pid, child_born):
            handoff = session.handoff
            if handoff is not None and handoff.leg == leg:
                handoff = _advance(handoff, Step.SPAWNED)
            pids = {"holder_pid": holder_pid, "child_pid": child_pid, "child_born": child_born}
            return replace(_with_leg(session, leg, pids), handoff=handoff)
        case LegNamed(leg, native_id, transcript):
            return _with_leg(session, leg, {"native_id": native_id, "transcript": transcript})
        case LegReady() | PromptSeen():
            return _note_turn(session, body)
        case LegBusy(leg) | LegPrompted(leg):
            # Whoever works without its packet has taken over; one that still waits for it may yet fail.
            tried = session.tried if session.handoff is not None else ()
            known = _end_own_offer(session) if isinstance(body, LegBusy) else session
            return replace(_with_leg(known, leg, {"was_busy": True}), due=None, tried=tried)
        case TaskDelivered(leg):
            return _with_leg(session, leg, {"was_given": True})
        case LegAnswered(leg) if session.leg is not None and session.leg.id == leg:
            return replace(session, refused=_leave_out(session.refused, session.agent))
        case ClockWasSetBack(leg, since):
            return _begin_earlier(session, leg, since)
        case SignalSeen() if is_refusal(body):
            refusal = _build_limit(body, event)
            return replace(session, refused=(*_leave_out(session.refused, body.agent), refusal))
        case SignalSeen() if is_warning(body):
            return note_warning(session, _build_limit(body, event))
        case SignalSeen() if body.decides and is_limit(body):
            return _note_limit(session, _build_limit(body, event))
        case ContextNoted(leg) | ContextCompacting(leg) | ContextSpared(leg) | DraftBegun(leg):
            is_own = session.leg is not None and session.leg.id == leg
            return replace(session, context=fold_context(session.context, body, event)) if is_own else session
        case BudgetNoted() | BudgetApplied():
            return fold_spending(session, body, event)
        case ReturnOffered(agent, by_itself):
            return replace(session, offered=agent, offer=agent, returns=by_itself)
        case ResumeAgreed() | LegContinues() | SessionWoke():
            return _note_rest(session, body)
        case HandoffBegun():
            begun = _begin_handoff(body, event)
            fresh = replace(session, why="", failure="", skipped=body.skipped, retriable=None, due=None)
            relieves = replace(session.context, relieved_at=event.at)
            context = relieves if begun.reason == "context" else session.context
            return replace(fresh, handoff=begun, context=context)
        case PredecessorStopped():
            return replace(session, handoff=_advance(session.handoff, Step.STOPPED))
        case PacketPublished():
            handoff = _advance(
                session.handoff,
                Step.PUBLISHED,
                packet=body.packet,
                sequence=body.sequence,
                json_path=body.json_path,
                text_path=body.text_path,
                lacks=body.lacks,
            )
            return replace(session, handoff=handoff, packets=max(session.packets, body.sequence))
        case PacketSaved(_, sequence):
            packets = max(session.packets, sequence)
            return replace(session, packets=packets, saved=(*session.saved, sequence))
        case PacketDelivered():
            return replace(session, handoff=_advance(session.handoff, Step.DELIVERED))
        case HandoffConfirmed():
            done = (*session.done, session.handoff) if session.handoff else session.done
            return replace(session, handoff=None, done=done, tried=(), failure="")
        case HandoffFailed():
            return _fail_handoff(session, body)
        case HandoffCancelled() if session.handoff is not None:
            return replace(session, handoff=replace(session.handoff, is_cancelled=True))
        case HandoffRetried() if session.retriable is not None:
            again = replace(session.retriable, step=find_step_left(session), is_cancelled=False)
            return replace(session, handoff=again, retriable=None, due=None, tried=(), failure="", why="")
        case HandoffClosed(handoff):
            return replace(session, closed=(*session.closed, handoff), due=find_due(session, body))
        case LegEnded(leg, how, status):
            return _with_leg(session, leg, {"how": how, "status": status, "ended_at": event.at})
        case SessionRested():
            rested = replace(
                session, rested_until=body.until, skipped=body.skipped, why=body.why, tried=(), offer=""
            )
            return replace(rested, handoff=None, retriable=session.handoff or session.retriable)
        case SessionEnded(why) | SessionStopping(why):
            left = session.handoff or session.retriable
            known = end_turn(session, "stopped", why) if isinstance(body, SessionEnded) else session
            return replace(known, why=why or session.why, handoff=None, tried=(), retriable=left)
        case TurnBegun() | TurnEnded():
            return fold_turn(session, body)
        case _:
            return session


def _note_turn(session: Session, body: LegReady | PromptSeen) -> Session:
    """Return the session whose leg took or awaits a prompt: what it was asked before is over.

    A prompt whose time cannot be parsed is left out: it could not be compared with a record's.
    """
    if isinstance(body, PromptSeen):
        at = parse_moment(body.asked_at)
        asked = Prompt(body.text, at, body.native_id, body.left_out) if at is not None else None
        return session if asked is None else _with_leg(session, body.leg, {"asked": asked})
    before = next((known.asked for known in session.legs if known.id == body.leg), None)
    over = replace(before, is_over=True) if before is not None else None
    return _with_leg(session, body.leg, {"was_ready": True, "asked": over})


def _note_rest(session: Session, body: ResumeAgreed | LegContinues | SessionWoke) -> Session:
    """Return the session after one more event about what goes on by itself when its rest is over."""
    match body:
        case ResumeAgreed(agreed):
            return replace(session, agreed=agreed)
        case LegContinues(leg, at, allowed):
            is_own = session.leg is not None and session.leg.id == leg
            return replace(session, continues_at=at, agent_may_continue=allowed) if is_own else session
        case SessionWoke(offers=offers):
            name = session.agent if offers else ""
            return replace(session, agreed=False, continues_at="", offer=name, rested_until="")


def _end_own_offer(session: Session) -> Session:
    """End the offer of an agent that works again after its rest; an offer of its own model stays."""
    leg = session.leg
    is_own = leg is not None and session.offer == leg.agent and not leg.model
    return replace(session, offer="") if is_own else session


def _fail_handoff(session: Session, body: HandoffFailed) -> Session:
    # Who was not given its packet took over all the same: it lives and is in charge, and counts
    # as one that failed only if it ends before it works.
    left, due = session.handoff or session.retriable, find_due(session, body)
    is_over = left is not None and body.step != "deliver"
    tried = (*session.tried, left.to_agent) if left is not None and is_over else session.tried
    return replace(session, handoff=None, tried=tried, failure=body.why, retriable=left, due=due)


def _note_limit(session: Session, limit: Limit) -> Session:
    """Return the session after its agent hit a limit; if it was being offered back, that ends."""
    is_offered = session.offered == limit.agent
    return (
        replace(session, limit=limit, offered="", offer="") if is_offered else replace(session, limit=limit)
    )


def find_step_left(session: Session) -> Step:
    """Return the step at which the session's retriable handoff goes on: what it reached is kept."""
    handoff, living = session.retriable, session.living_leg
    if handoff is not None and living is not None and living.id == handoff.leg:
        return Step.SPAWNED
    return Step.PUBLISHED if handoff is not None and handoff.packet else Step.STOPPED


def _leave_out(refused: tuple[Limit, ...], agent: str) -> tuple[Limit, ...]:
    return tuple(found for found in refused if found.agent != agent)


def _build_limit(body: SignalSeen, event: Event) -> Limit:
    return Limit(body.agent, body.scope, body.until, body.text, body.source, event.at, body.model)


def _begin_leg(session: Session, body: LegStarting, event: Event) -> Session:
    leg = Leg(
        body.leg,
        body.agent,
        body.generation,
        event.at,
        native_id=body.native_id,
        handoff=body.handoff,
        packet=body.packet,
        resumes=body.resumes,
        model=body.model,
        headless=body.headless,
        owner=body.owner,
    )
    legs = (*(known for known in session.legs if known.id != leg.id), leg)
    handoff = _advance(session.handoff, Step.SPAWNING, leg=leg.id)
    return replace(
        forget_leg(session, event.at),
        turn=count_leg(session.turn, is_headless=leg.headless),
        legs=legs,
        generation=body.generation,
        handoff=handoff,
        context=begin_context(session.context, is_relief=_is_relief(session, body)),
        rested_until="",
        offer="",
        agreed=False,
        continues_at="",
        refused=_leave_out(session.refused, body.agent),
        retriable=None,
        due=None,
    )


def _is_relief(session: Session, body: LegStarting) -> bool:
    """Return whether the leg is the fresh one that takes over from one with a full context."""
    handoff = session.handoff
    return handoff is not None and handoff.reason == "context" and not body.resumes


def _begin_handoff(body: HandoffBegun, event: Event) -> Handoff:
    return Handoff(
        body.handoff,
        body.from_leg,
        body.from_agent,
        body.to_agent,
        body.reason,
        event.at,
        why=body.why,
        focus=body.focus,
        skipped=body.skipped,
        model=body.model,
        parent=body.parent,
        depth=body.depth,
        rolls_back=body.rolls_back,
        terms=read_terms(body),
    )


def read_terms(body: HandoffBegun) -> Terms:
    """Return the terms a person gave for the handoff, as the journal has them."""
    return Terms(
        deliverables=body.deliverables,
        criteria=body.criteria,
        constraints=body.constraints,
        priority=body.priority,
        needs=body.needs,
        rollback=body.rollback,
        questions=body.questions,
    )


def _advance(handoff: Handoff | None, step: Step, **changes: str | int) -> Handoff | None:
    return None if handoff is None else replace(handoff, step=step, **changes)  # type: ignore[arg-type]  # fields of one dataclass, named by the caller


def _begin_earlier(session: Session, leg_id: str, since: str) -> Session:
    """Move the leg's beginning back to `since` at the latest, after the clock was set back."""
    at = parse_moment(since)
    starts = [leg.starting_at for leg in session.legs if leg.id == leg_id]
    return _with_leg(session, leg_id, {"starting_at": min((at, *starts))}) if at is not None else session


def _with_leg(session: Session, leg_id: str, changes: Mapping[str, object]) -> Session:
    legs = tuple(replace(leg, **changes) if leg.id == leg_id else leg for leg in session.legs)  # type: ignore[arg-type]  # same
    return replace(session, legs=legs)
