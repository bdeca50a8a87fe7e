"""The state machine: decide what follows from one input to a session.

`step` returns the events to journal and the effects to perform, and leaves most inputs to the module of
their subject. At the end of a turn the order is: what the agent asked for, then the return to the preferred
agent, then budgets, then the context.
"""

from datetime import timedelta

from agent_relay.domain import inputs
from agent_relay.domain.effects import AwaitQuiet, NoteRest, ShowMessage, StopLeg, WakeAt
from agent_relay.domain.errors import NobodyAvailableError, TurnOverError, WrongUseError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.limits import Kind, Scope, Signal
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.session import Leg, Limit, Session, Step
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.text.names import continue_command, name_limit
from agent_relay.domain.values import Asker, replace
from agent_relay.session import handoffs, interventions, requests, rests, returns
from agent_relay.session._recovery import restarted
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.fold import is_refusal
from agent_relay.session.limits import standbys, usage_limits
from agent_relay.session.transitions import build_limit, inherit_terms, is_told, is_warning
from agent_relay.session.turns.lifecycle import headless_prompted, headless_spawned, leg_gone, take_turn


def finish_turn(session: Session, world: DecisionContext) -> Outcome:
    """Begin what waited for a turn's end.

    That is what the agent asked for, else the return to a preferred agent, else a budget, else a context.
    """
    asked = requests.await_turn_end(replace(session, state=State.READY))
    if asked.effects:
        return asked
    after = replace(session, state=State.READY)
    back = returns.await_quiet(after, world)
    if _waits(back):
        return back
    applied = usage_limits.apply_budgets(after, world)
    return back.then(applied if applied.effects else usage_limits.turn_ended(after, world))


def _waits(outcome: Outcome) -> bool:
    return any(isinstance(effect, AwaitQuiet) for effect in outcome.effects)


def _fell_quiet(session: Session, leg: str, world: DecisionContext) -> Outcome:
    """Begin what waited until nobody types.

    That is what the agent asked for, else a return, else a budget, else the relief of a context.
    """
    begun = requests.begin_requested(session, leg, world)
    if begun.bodies:
        return begun
    back = returns.begin_quietly(session, leg, world)
    if requests.find_begun(back) is not None:
        return back
    applied = usage_limits.apply_quietly(session, leg, world)
    return back.then(applied if applied.bodies else usage_limits.quiet(session, leg, world))


_HANDOFF_SCOPES = frozenset({Scope.MODEL, Scope.ACCOUNT, Scope.BILLING})
_UNDER_WAY = frozenset({Step.BEGUN, Step.STOPPED, Step.PUBLISHED, Step.SPAWNING})
_LIMIT_KINDS = frozenset({Kind.LIMIT, Kind.SILENT_LIMIT})


def step(session: Session, happened: inputs.Input, world: DecisionContext) -> Outcome:
    """Decide what follows from `happened`; nothing follows from late news of legs that are not the newest.

    Raises WrongUseError or NobodyAvailableError if what a person asked for is not possible.
    """
    # Who is asked for by name may have been signed in since, and is believed to have been.
    if not (isinstance(happened, inputs.HandoffAsked) and happened.agent):
        world = usage_limits.note_spent(session, handoffs.note_refused(session, world))
    standby = standbys.find_own(session, happened)
    if standby is not None:
        return standbys.hear(standby, happened)
    decided = _decide(session, happened, world)
    if isinstance(happened, inputs.Asked):
        decided = _sign(decided, happened.asker)
    outcome = requests.keep_verdict(session, decided)
    return outcome.then(standbys.settle(session, outcome, world))


_Signed = (
    work.HandoffBegun
    | work.HandoffCancelled
    | work.HandoffRetried
    | work.HandoffRequested
    | work.HandoffWithdrawn
    | events.ResumeAgreed
)


def _sign(outcome: Outcome, asker: Asker) -> Outcome:
    """Return the outcome whose events say who asked for them."""
    bodies = tuple(
        replace(body, user=asker.user, via=asker.via) if isinstance(body, _Signed) else body
        for body in outcome.bodies
    )
    return Outcome(bodies, outcome.effects)


def _decide(session: Session, happened: inputs.Input, world: DecisionContext) -> Outcome:  # noqa: C901, PLR0911, PLR0912 - one arm a happening
    match happened:
        case inputs.HandoffAsked():
            return _asked(session, happened, world)
        case inputs.HandoffWished() | inputs.AcceptSaid() | inputs.VerdictSaid() | inputs.NoteSaid():
            return _said(session, happened, world)
        case inputs.CancelAsked():
            return interventions.cancel(session, happened)
        case inputs.RetryAsked():
            return interventions.retry(session, happened, world)
        case inputs.CloseAsked():
            return interventions.close(session, happened, world)
        case inputs.SignalFound(leg, signal):
            return _heard(session, leg, signal, world)
        case inputs.StateSeen(leg, state):
            return _screen_says(session, leg, state, world)
        case inputs.Answered():
            return rests.answered(session, happened, world.now)
        case inputs.ClockSetBack(leg, since):
            return Outcome((events.ClockWasSetBack(leg, since.isoformat()),))
        case inputs.PromptTaken(leg):
            return _prompted(session, leg)
        case inputs.ContextFilled():
            return usage_limits.filled(session, happened, world)
        case inputs.NearLimitOver(leg):
            return standbys.end_near_limit(session, leg)
        case inputs.CompactWished():
            return usage_limits.wish_compact(session, happened, world)
        case inputs.CompactSkipped(leg):
            return usage_limits.spared(session, leg)
        case inputs.BudgetsCounted():
            return usage_limits.note_counted(session, happened, world)
        case inputs.LegQuiet(leg):
            return _fell_quiet(session, leg, world)
        case inputs.LegGone():
            return leg_gone(session, happened, world)
        case inputs.Spawned():
            return _spawned(session, happened)
        case inputs.Published():
            return handoffs.published(session, happened, world)
        case inputs.PublishFailed(handoff) if session.handoff and session.handoff.id == handoff:
            return handoffs.publish_failed(session, happened, session.handoff, world)
        case inputs.Delivered() | inputs.DeliverFailed() | inputs.TaskGiven():
            return handoffs.handle_delivery(session, happened, world)
        case inputs.ResetPassed():
            return rests.reset_passed(session, world)
        case inputs.StopAsked(why):
            return _stop_asked(session, why)
        case inputs.TurnAsked():
            return take_turn(session, happened, world)
        case inputs.Restarted():
            return restarted(session, world, happened).then(Outcome((), standbys.take_up(session)))
        case inputs.ContinueAnnounced():
            return rests.continues(session, happened, world)
        case inputs.ResumeAsked():
            return rests.resume_wished(session, happened)
        case inputs.ContinueAsked():
            return rests.go_on_asked(session, world)
        case _:
            return NOTHING


def _said(
    session: Session,
    said: inputs.HandoffWished | inputs.AcceptSaid | inputs.VerdictSaid | inputs.NoteSaid,
    world: DecisionContext,
) -> Outcome:
    match said:
        case inputs.HandoffWished():
            return requests.request_handoff(session, said, world)
        case inputs.AcceptSaid():
            return requests.accept(session, said)
        case inputs.VerdictSaid():
            return requests.say_verdict(session, said, world)
        case inputs.NoteSaid():
            return requests.keep_note(session, said)


def _asked(session: Session, asked: inputs.HandoffAsked, world: DecisionContext) -> Outcome:
    living = session.living_leg
    _check_asked(session, asked)
    if living is None and session.leg is not None and asked.agent:
        begun = _begin_again(session, session.leg, asked, world)
        if begun is not None:
            return begun
    # Without a name the next one of the order is meant; whoever works now is not.
    roster = (asked.agent,) if asked.agent else session.roster
    current = "" if asked.agent else session.agent
    terms = inherit_terms(session) if asked.terms.is_empty else asked.terms
    relieved = NOTHING if asked.agent else usage_limits.relieve_asked(session, asked, terms, world)
    if relieved.bodies:
        return relieved
    believed = world.wake(asked.agent) if asked.force else world
    choice = believed.choose(roster, current=current, needs=terms.needs)
    interventions.check_waiting_packet(session, choice.successor, world)
    if not choice.successor:
        what = "cannot start an agent" if session.leg is None else "cannot hand over"
        why = "; ".join(choice.skipped) or "there is nobody else in the order"
        raise NobodyAvailableError(f"{what} ({why})", hint=_tell_force(session, asked.agent))
    if session.leg is None:
        return handoffs.begin_leg(session, choice.successor, world)
    return handoffs.begin_handoff(
        session,
        choice.successor,
        asked.reason,
        world,
        focus=asked.focus,
        why="asked for",
        terms=terms,
        digest=asked.digest,
    )


def _check_asked(session: Session, asked: inputs.HandoffAsked) -> None:
    """Raise WrongUseError if the session cannot be handed over as asked."""
    living, handoff = session.living_leg, session.handoff
    if asked.turn and session.open_turn is None:
        raise TurnOverError("the turn to hand over has just ended")
    if session.state is State.STOPPING:
        raise WrongUseError(f"session {session.id} is ending", hint="Begin another one with --new")
    if handoff is not None and handoff.is_cancelled:
        raise WrongUseError(f"the handoff to {handoff.to_agent} is being cancelled", hint="Try again then")
    if handoff is not None and (handoff.step in _UNDER_WAY or handoff.to_agent == asked.agent):
        raise WrongUseError(f"a handoff to {handoff.to_agent} is under way")
    # On its fallback model, the agent at work can be offered its own one.
    if living is not None and living.agent == asked.agent and session.offer != asked.agent:
        raise WrongUseError(f"{asked.agent} is already at work in this session")


def _tell_force(session: Session, agent: str) -> str:
    """Return the command that hands over to `agent`, or the next of the order, despite its rest."""
    others = [name for name in session.roster if name != session.agent]
    name = agent or next(iter(others), "")
    return f"{continue_command(name, session.id, '--yes')} hands over all the same" if name else ""


def _begin_again(
    session: Session, last: Leg, asked: inputs.HandoffAsked, world: DecisionContext
) -> Outcome | None:
    """Continue with `asked.agent` if no leg lives and no new packet is needed; `None` if one is.

    A packet that never reached its successor goes to the agent that takes its place.
    """
    interventions.check_waiting_packet(session, asked.agent, world)
    owed = session.retriable
    if owed is not None and owed.to_agent == asked.agent:
        is_plain = not asked.focus and asked.terms.is_empty and owed.sequence >= max(session.saved, default=0)
        return (
            interventions.resume_handoff(session, owed, world)
            if is_plain and session.state in interventions.RETRIED_FROM
            else None
        )
    if last.agent != asked.agent:
        return None
    # Its conversation is not known by name: what it worked on would be lost in a new one.
    is_nameless = last.was_busy and bool(last.handoff) and not handoffs.find_native_id(session, last.agent)
    return None if is_nameless else handoffs.begin_leg(session, last.agent, world, resumes=True)


def _heard(session: Session, leg: str, signal: Signal, world: DecisionContext) -> Outcome:
    living = session.living_leg
    if living is None or living.id != leg or signal.kind is Kind.RETRY:
        return NOTHING
    seen = _build_seen(leg, signal)
    if is_refusal(seen):
        # Another agent would hide what the user has to mend; who was told once is not told again.
        is_new = session.refusal is None and session.state in (*LIVE, State.RESTING)
        return Outcome((seen,), (ShowMessage(leg),) if is_new else ())
    if is_warning(seen):
        is_new = session.state in LIVE and not is_told(session, seen, world.now)
        told = Outcome((seen,), (ShowMessage(leg),) if is_new else ())
        near = replace(session, near=build_limit(seen, world.now))
        if is_new:
            prepared = usage_limits.prepare_successor(session, living, world)
        else:
            prepared = usage_limits.keep_prepared(near, living, world) if session.state in LIVE else NOTHING
        return told.then(prepared).then(usage_limits.turn_ended(near, world))
    acts = signal.decides and signal.kind in _LIMIT_KINDS and signal.scope in _HANDOFF_SCOPES
    if not acts:
        return Outcome((seen,))
    rest = NoteRest(signal.agent, signal.scope, signal.resets_at, signal.evidence.text, model=signal.model)
    wake = (WakeAt(signal.resets_at),) if signal.resets_at else ()
    if session.state not in (*LIVE, State.RESTING) or (living.headless and session.open_turn is None):
        # What decided is in the journal; what only confirms it is not.
        is_exacter = session.state in {State.HANDING_OFF, State.RESTING} and _is_exacter(session.limit, seen)
        return Outcome((), (rest, *wake)) if is_exacter else NOTHING
    # The ledger learns of it only after this was decided.
    known = rests.include_rest(world, rest)
    why = f"{signal.agent} hit {name_limit(signal.scope, signal.model, signal.evidence.text)}"
    rolled = requests.roll_back_first(session, known)
    after = (
        rolled
        if rolled.bodies
        else handoffs.remedy_limit(session, known, build_limit(seen, world.now), why=why)
    )
    return Outcome((seen,), (rest, *wake)).then(after)


def _is_exacter(limit: Limit | None, seen: events.SignalSeen) -> bool:
    """Return whether `seen` gives the same limit's reset to the second, of which only the minute was known.

    An agent's words name the minute; its record, which may be read later, has the moment. An agent offered
    back at the minute would meet the limit once more.
    """
    if limit is None or (limit.agent, limit.scope, limit.model) != (seen.agent, seen.scope, seen.model):
        return False
    known, new = parse_moment(limit.until), parse_moment(seen.until)
    return known is not None and new is not None and timedelta(0) < new - known < timedelta(minutes=1)


def _build_seen(leg: str, signal: Signal) -> events.SignalSeen:
    return events.SignalSeen(
        leg,
        signal.agent,
        signal.kind,
        signal.scope,
        signal.evidence.source,
        signal.evidence.text,
        signal.decides,
        until=signal.resets_at.isoformat() if signal.resets_at else "",
        rule=signal.rule,
        model=signal.model,
    )


def _screen_says(session: Session, leg: str, state: str, world: DecisionContext) -> Outcome:
    living = session.living_leg
    if living is None or living.id != leg or session.state not in LIVE:
        return rests.seen_while_resting(session, leg, state, world)
    if session.state.value == state:
        # Who takes up a leg that was ready before tells so, too: what it waited for then, it waits for still.
        return Outcome((), handoffs.find_delivery(session, living) if session.state is State.READY else ())
    handoff = session.handoff
    match state:
        case State.READY:
            ready = Outcome((events.LegReady(leg),), handoffs.find_delivery(session, living))
            return ready if ready.effects else ready.then(finish_turn(session, world))
        case State.BUSY:
            confirmed: tuple[events.Body, ...] = ()
            if handoff is not None and handoff.step is Step.DELIVERED:
                confirmed = (work.HandoffConfirmed(handoff.id, leg),)
            again = usage_limits.keep_prepared(session, replace(living, was_busy=True), world)
            return Outcome((events.LegBusy(leg), *confirmed)).then(again)
        case State.ASKING:
            return Outcome((events.LegAsking(leg),))
        case _:
            return NOTHING


def _prompted(session: Session, leg: str) -> Outcome:
    living = session.living_leg
    if living is None or living.id != leg or living.was_busy:
        return NOTHING
    if living.headless:
        return headless_prompted(session, living)
    handoff = session.handoff
    is_delivered = handoff is not None and handoff.step is Step.DELIVERED and session.state in LIVE
    confirmed = (work.HandoffConfirmed(handoff.id, leg),) if handoff is not None and is_delivered else ()
    return Outcome((events.LegPrompted(leg), *confirmed))


def _spawned(session: Session, spawned: inputs.Spawned) -> Outcome:
    """Journal that the leg lives; if its screen was seen ready before this, deliver what waits."""
    leg = session.living_leg
    if leg is None or leg.id != spawned.leg or leg.child_pid:
        return NOTHING
    started = events.LegStarted(leg.id, spawned.holder_pid, spawned.child_pid, spawned.child_born)
    if leg.headless:
        return headless_spawned(session, leg, started)
    handoff = session.handoff and replace(session.handoff, step=Step.SPAWNED)
    waits = session.state is State.READY
    return Outcome(
        (started,), handoffs.find_delivery(replace(session, handoff=handoff), leg) if waits else ()
    )


def _stop_asked(session: Session, why: str) -> Outcome:
    leg = session.living_leg
    if session.state is State.ENDED:
        return NOTHING
    if leg is None:
        return Outcome((events.SessionStopping(why), events.SessionEnded(why)))
    return Outcome((events.SessionStopping(why),), (StopLeg(leg.id),))
