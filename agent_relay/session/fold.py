"""Fold the events of a journal into the session they describe."""

from collections.abc import Iterable, Mapping

import msgspec

from agent_relay.domain.events import session as events
from agent_relay.domain.events import standby as standbys
from agent_relay.domain.events import work
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import (
    Handoff,
    Leg,
    Limit,
    Prompt,
    PutOff,
    Session,
    Standby,
    Step,
    Terms,
    Unasked,
    UnusedStandby,
)
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import Asker, replace
from agent_relay.session import handoffs, requests, transitions

_MOST_UNASKED = 16
"""Number of the newest that are kept: a few are enough to see that work goes to and fro."""
_MOST_UNUSED = 8


class ImpossibleEventError(AssertionError):
    """An event arrived in a state it cannot follow: a bug, never the user's fault."""


def fold_events(journal: Iterable[events.Event]) -> Session | None:
    """Return the session a whole journal describes; `None` for a journal without its first event."""
    session: Session | None = None
    for event in journal:
        session = fold_event(session, event)
    return session


def fold_event(session: Session | None, event: events.Event) -> Session | None:
    """Return the session after one more event; raise ImpossibleEventError if no transition allows it."""
    body = event.body
    if session is None:
        if not isinstance(body, events.SessionCreated):
            if isinstance(body, events.Unknown):
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
    target = transitions.TRANSITIONS.get(type(body), {}).get(session.state)
    if target is None:
        raise ImpossibleEventError(f"{body.name} while {session.state}")
    if isinstance(body, events.SignalSeen) and body.decides and is_limit(body) and session.state in LIVE:
        target = State.LIMITED
    changed = replace(session, state=target, updated_at=event.at, number=event.number)
    if isinstance(body, events.SessionMoved):
        return replace(changed, root=body.root, cwd=body.cwd)
    return _apply(changed, body, event)


def is_limit(body: events.SignalSeen) -> bool:
    """Return whether a seen signal means that the agent will not answer until a reset."""
    return body.kind in {"limit", "silent-limit"} and body.scope in {"model", "account", "billing"}


def is_refusal(body: events.SignalSeen) -> bool:
    """Return whether a seen signal means that the agent is signed out or its key was refused."""
    return body.decides and body.scope == "auth"


def _apply(session: Session, body: events.Body, event: events.Event) -> Session:  # noqa: C901, PLR0911, PLR0912, PLR0915 - one arm an event
    match body:
        case events.LegStarting():
            return _begin_leg(session, body, event)
        case events.LegStarted(leg, holder_pid, child_pid, child_born):
            handoff = session.handoff
            if handoff is not None and handoff.leg == leg:
                handoff = _advance(handoff, Step.SPAWNED)
            pids = {"holder_pid": holder_pid, "child_pid": child_pid, "child_born": child_born}
            return replace(_with_leg(session, leg, pids), handoff=handoff)
        case events.LegNamed(leg, native_id, transcript):
            return _with_leg(session, leg, {"native_id": native_id, "transcript": transcript})
        case events.LegReady() | events.PromptSeen():
            return _note_turn(session, body)
        case events.LegBusy(leg) | events.LegPrompted(leg):
            # Whoever works without its packet has taken over; one that still waits for it may yet fail.
            tried = session.tried if session.handoff is not None else ()
            known = _end_own_offer(session) if isinstance(body, events.LegBusy) else session
            return replace(_with_leg(known, leg, {"was_busy": True}), due=None, tried=tried)
        case events.TaskDelivered(leg):
            return _with_leg(session, leg, {"was_given": True})
        case events.LegAnswered(leg) if session.leg is not None and session.leg.id == leg:
            return replace(session, refused=_leave_out(session.refused, session.agent))
        case events.ClockWasSetBack(leg, since):
            return _begin_earlier(session, leg, since)
        case events.SignalSeen() if is_refusal(body):
            refusal = transitions.build_limit(body, event.at)
            return replace(session, refused=(*_leave_out(session.refused, body.agent), refusal))
        case events.SignalSeen() if transitions.is_warning(body):
            return transitions.note_warning(session, transitions.build_limit(body, event.at))
        case events.SignalSeen() if body.decides and is_limit(body):
            return _note_limit(session, transitions.build_limit(body, event.at))
        case (
            work.ContextNoted(leg)
            | work.ContextCompacting(leg)
            | events.ContextWished(leg)
            | work.ContextSpared(leg)
            | work.DraftBegun(leg)
        ):
            if session.leg is None or session.leg.id != leg:
                return session
            return replace(session, context=transitions.fold_context(session.context, body, event))
        case _ if isinstance(body, standbys.StandbyBody):
            return _fold_standby(session, body, event)
        case events.NearLimitEnded(leg) if session.leg is not None and session.leg.id == leg:
            return replace(session, near=None, prepared=None)
        case work.SuccessorChosen() | work.BudgetNoted() | work.BudgetApplied():
            return transitions.fold_usage(session, body, event)
        case events.ReturnOffered() | events.ReturnPutOff() | events.ConsentUsed():
            return _note_return(session, body, event)
        case events.ResumeAgreed() | events.LegContinues() | events.SessionWoke():
            return _note_rest(session, body)
        case work.HandoffBegun():
            begun = _begin_handoff(body, event)
            fresh = replace(session, why="", failure="", skipped=body.skipped, retriable=None, due=None)
            relieves = replace(session.context, relieved_at=event.at)
            context = relieves if begun.reason == "context" else session.context
            return replace(fresh, handoff=begun, context=context, request=None)
        case work.PredecessorStopped():
            return replace(session, handoff=_advance(session.handoff, Step.STOPPED))
        case work.PacketPublished():
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
        case work.PacketSaved(_, sequence):
            packets = max(session.packets, sequence)
            return replace(session, packets=packets, saved=(*session.saved, sequence))
        case work.PacketDelivered():
            return replace(session, handoff=_advance(session.handoff, Step.DELIVERED))
        case work.HandoffConfirmed():
            done = (*session.done, session.handoff) if session.handoff else session.done
            return replace(session, handoff=None, done=done, tried=(), failure="")
        case work.HandoffFailed():
            return _fail_handoff(session, body)
        case work.HandoffCancelled() | work.DigestBegun() | work.DigestEnded():
            return replace(session, handoff=_mark_handoff(session.handoff, body))
        case work.HandoffRetried() if session.retriable is not None:
            again = replace(session.retriable, step=handoffs.find_step_left(session), is_cancelled=False)
            return replace(session, handoff=again, retriable=None, due=None, tried=(), failure="", why="")
        case work.HandoffClosed(handoff):
            return replace(
                session, closed=(*session.closed, handoff), due=transitions.find_due(session, body)
            )
        case work.HandoffRequested() | work.HandoffWithdrawn() | work.HandoffAccepted() | work.AgentNoted():
            return requests.fold_said(session, body, event)
        case events.CheckpointMade(noted_at=noted_at) if noted_at:
            return requests.mark_note(session, noted_at)
        case events.LegEnded(leg, how, status):
            ended = {"how": how, "status": status, "ended_at": event.at}
            return _with_leg(requests.drop_request(session, leg), leg, ended)
        case events.SessionRested():
            rested = replace(session, rested_until=body.until, reset_assumed=body.assumed, tried=(), offer="")
            left = session.handoff or session.retriable
            return replace(rested, skipped=body.skipped, why=body.why, handoff=None, retriable=left)
        case events.SessionEnded(why) | events.SessionStopping(why):
            left = session.handoff or session.retriable
            known = (
                transitions.end_turn(session, "stopped", why)
                if isinstance(body, events.SessionEnded)
                else session
            )
            return replace(known, why=why or session.why, handoff=None, tried=(), retriable=left)
        case work.TurnBegun() | work.TurnEnded():
            return transitions.fold_turn(session, body)
        case _:
            return session


def _note_turn(session: Session, body: events.LegReady | events.PromptSeen) -> Session:
    """Return the session whose leg took or awaits a prompt: what it was asked before is over.

    A prompt whose time cannot be parsed is left out: it could not be compared with a record's.
    """
    if isinstance(body, events.PromptSeen):
        at = parse_moment(body.asked_at)
        asked = Prompt(body.text, at, body.native_id, body.left_out) if at is not None else None
        return session if asked is None else _with_leg(session, body.leg, {"asked": asked})
    before = next((known.asked for known in session.legs if known.id == body.leg), None)
    over = replace(before, is_over=True) if before is not None else None
    return _with_leg(session, body.leg, {"was_ready": True, "asked": over})


def _note_rest(
    session: Session, body: events.ResumeAgreed | events.LegContinues | events.SessionWoke
) -> Session:
    """Return the session after one more event about what goes on by itself when its rest is over."""
    match body:
        case events.ResumeAgreed(agreed, user, via):
            return replace(session, agreed=agreed, agreed_by=Asker(user, via))
        case events.LegContinues(leg, at, allowed):
            is_own = session.leg is not None and session.leg.id == leg
            return replace(session, continues_at=at, agent_may_continue=allowed) if is_own else session
        case events.SessionWoke(offers=offers):
            name = session.agent if offers else ""
            return replace(session, agreed=False, continues_at="", offer=name, rested_until="")


def _end_own_offer(session: Session) -> Session:
    """End the offer of an agent that works again after its rest; an offer of its own model stays."""
    leg = session.leg
    is_own = leg is not None and session.offer == leg.agent and not leg.model
    return replace(session, offer="") if is_own else session


def _fail_handoff(session: Session, body: work.HandoffFailed) -> Session:
    # Who was not given its packet took over all the same: it lives and is in charge, and counts
    # as one that failed only if it ends before it works.
    left, due = session.handoff or session.retriable, transitions.find_due(session, body)
    is_over = left is not None and body.step != "deliver"
    tried = (*session.tried, left.to_agent) if left is not None and is_over else session.tried
    return replace(session, handoff=None, tried=tried, failure=body.why, retriable=left, due=due)


def _note_return(
    session: Session,
    body: events.ReturnOffered | events.ReturnPutOff | events.ConsentUsed,
    event: events.Event,
) -> Session:
    match body:
        case events.ReturnOffered(agent, by_itself, why):
            others = tuple(one for one in session.put_off if one.agent != agent)
            return replace(session, offered=agent, offer=agent, returns=by_itself, held=why, put_off=others)
        case events.ReturnPutOff(agent, why, until):
            others = tuple(one for one in session.put_off if one.agent != agent)
            left = _withdraw_offer(session, agent)
            return replace(left, put_off=(*others, PutOff(agent, why, until)))
        case events.ConsentUsed(agent):
            return replace(session, unasked=(*session.unasked, Unasked(agent, event.at))[-_MOST_UNASKED:])


def _note_limit(session: Session, limit: Limit) -> Session:
    """Return the session after its agent hit a limit; if it was being offered back, that ends."""
    limits = (*_leave_out(session.limits, limit.agent), limit)
    put_off = tuple(one for one in session.put_off if one.agent != limit.agent)
    return replace(_withdraw_offer(session, limit.agent), limit=limit, limits=limits, put_off=put_off)


def _withdraw_offer(session: Session, agent: str) -> Session:
    return replace(session, offered="", offer="", returns=False) if session.offered == agent else session


def _leave_out(refused: tuple[Limit, ...], agent: str) -> tuple[Limit, ...]:
    return tuple(found for found in refused if found.agent != agent)


def _begin_leg(session: Session, body: events.LegStarting, event: events.Event) -> Session:
    ahead = session.standby if session.is_standby(body.leg) else None
    leg = Leg(
        body.leg,
        body.agent,
        body.generation,
        # What a standby recorded is its own from its start on.
        event.at if ahead is None else ahead.leg.starting_at,
        native_id=body.native_id,
        handoff=body.handoff,
        packet=body.packet,
        resumes=body.resumes,
        model=body.model,
        headless=body.headless,
        owner=body.owner,
        lane_why=body.lane_why,
        effort=body.effort,
    )
    legs = (*(known for known in session.legs if known.id != leg.id), leg)
    handoff = _advance(session.handoff, Step.SPAWNING, leg=leg.id)
    return replace(
        transitions.forget_leg(session, event.at),
        turn=transitions.count_leg(session.turn, is_headless=leg.headless),
        legs=legs,
        generation=body.generation,
        handoff=handoff,
        context=transitions.begin_context(session.context, is_relief=_is_relief(session, body)),
        rested_until="",
        offer="",
        returns=False,
        agreed=False,
        continues_at="",
        refused=_leave_out(session.refused, body.agent),
        retriable=None,
        due=None,
        standby=None if ahead is not None else session.standby,
    )


def _is_relief(session: Session, body: events.LegStarting) -> bool:
    """Return whether the leg is the fresh one that takes over from one with a full context."""
    handoff = session.handoff
    return handoff is not None and handoff.reason == "context" and not body.resumes


def _begin_handoff(body: work.HandoffBegun, event: events.Event) -> Handoff:
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
        digest=body.digest,
    )


def read_terms(body: work.HandoffBegun) -> Terms:
    """Return the terms a person gave for the handoff, as the journal has them."""
    return msgspec.convert(body, Terms, from_attributes=True)


# Has msgspec study the type while the module is loaded: two threads that do so at once crash the process.
msgspec.json.Decoder(Terms)


def _mark_handoff(
    handoff: Handoff | None, body: work.HandoffCancelled | work.DigestBegun | work.DigestEnded
) -> Handoff | None:
    """Return the handoff marked as cancelled, or as having its successor's document begun or ended."""
    if handoff is None or isinstance(body, work.HandoffCancelled):
        return handoff and replace(handoff, is_cancelled=True)
    return replace(handoff, is_digesting=isinstance(body, work.DigestBegun))


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


def _fold_standby(session: Session, body: standbys.StandbyBody, event: events.Event) -> Session:
    """Return the session after one more event about a standby; one about another one changes nothing."""
    after = session.standby
    if isinstance(body, standbys.StandbyStarting):
        leg = Leg(body.leg, body.agent, event.generation, event.at, body.native_id, owner=body.owner)
        after = Standby(replace(leg, resumes=body.resumes, effort=body.effort), body.setup)
    elif after is None or after.leg.id != body.leg:
        return session
    match body:
        case standbys.StandbyStarted(_, holder, child, born):
            leg = replace(after.leg, holder_pid=holder, child_pid=child, child_born=born)
            after = replace(after, leg=leg)
        case standbys.StandbyReady():
            after = replace(after, leg=replace(after.leg, was_ready=True))
        case standbys.StandbyDropped(unfit=unfit):
            after = replace(after, is_dropped=True, is_unfit=unfit)
        case standbys.StandbyEnded():
            gone = UnusedStandby(after.leg.agent, after.setup, event.at, after.is_unfit)
            unused = (*session.unused_standbys, gone)[-_MOST_UNUSED:]
            return replace(session, standby=None, unused_standbys=unused)
    return replace(session, standby=after)
