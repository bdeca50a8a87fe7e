"""A person's interventions in a handoff: preview, cancel, retry, or judge its result.

A waiting packet is checked first: no agent is stopped for a packet that cannot be read.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent_relay.domain.effects import PublishPacket, StopLeg
from agent_relay.domain.errors import NobodyAvailableError, RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.events import work
from agent_relay.domain.inputs import CancelAsked, CloseAsked, RetryAsked
from agent_relay.domain.protocol.handoff_report import CriterionVerdict, HandoffReport
from agent_relay.domain.session import Handoff, Session, Step
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.text.names import continue_command, retry_command
from agent_relay.domain.values import replace
from agent_relay.session import handoffs
from agent_relay.session.decision import DecisionContext, Outcome, explain_unavailable
from agent_relay.session.transitions import inherit_terms

if TYPE_CHECKING:
    from agent_relay.domain.events.session import Body


def check_waiting_packet(session: Session, agent: str, world: DecisionContext) -> None:
    """Raise UntrustedDataError, with the way out, if the packet that waits for `agent` is unusable."""
    why = world.spoilt.get(agent, "")
    if agent and why:
        again = continue_command(agent, session.id, "--no-launch")
        raise UntrustedDataError(
            f"the packet that waits for {agent} cannot be used: {why}",
            hint=f"Write another one, which then counts: {again}",
        )


RETRIED_FROM = frozenset({State.LIMITED, State.RESTING, State.ENDED})
"""States in which a handoff can go on without a leg."""
VERDICTS = ("completed", "failed")
REJECTED = "rejected"
"""The verdict of an agent that does not take the handoff over."""
_DIGITS = 4
"""The most digits in the number of a criterion."""


def cancel(session: Session, asked: CancelAsked) -> Outcome:
    """Cancel the handoff under way: finish or undo what it has begun, then let the session rest.

    Its predecessor is already being stopped, so the packet is made all the same; a successor that has not
    been given it yet is stopped. One that an agent asked for, and that has not begun, is dropped. Raises
    WrongUseError if there is nothing to cancel any more.
    """
    if session.request is not None and session.request.id == asked.handoff:
        return Outcome((work.HandoffWithdrawn(asked.handoff, asked.why or "a person cancelled it"),))
    handoff = session.handoff
    if handoff is None or handoff.id != asked.handoff:
        raise _refuse_over(session, asked.handoff, "cancelled")
    if handoff.is_cancelled:
        raise WrongUseError(f"handoff {handoff.id} is being cancelled already")
    if handoff.step is Step.DELIVERED:
        back = continue_command(handoff.from_agent, session.id)
        raise WrongUseError(
            f"too late to cancel: {handoff.to_agent} already has the packet",
            hint=f"Take it back: {back}, or agent-relay handoff fail {handoff.id}",
        )
    cancelled = Outcome((work.HandoffCancelled(handoff.id, handoff.step, asked.why),))
    match handoff.step:
        case Step.BEGUN | Step.STOPPED:
            # The predecessor's end, or its packet, is on the way, and brings the rest.
            return cancelled
        case Step.PUBLISHED:
            return cancelled.then(handoffs.rest_cancelled(handoff))
        case _:
            return cancelled.then(Outcome((), (StopLeg(handoff.leg),)))


def retry(session: Session, asked: RetryAsked, world: DecisionContext) -> Outcome:
    """Resume the last handoff where it failed or was cancelled, with the packet it had.

    Raises WrongUseError if the session has gone on since, NobodyAvailableError if its target is unavailable.
    """
    handoff, living = session.retriable, session.living_leg
    if session.handoff is not None and session.handoff.id == asked.handoff:
        raise WrongUseError(f"handoff {asked.handoff} is under way")
    if handoff is None or handoff.id != asked.handoff or session.handoff is not None:
        raise _refuse_over(session, asked.handoff, "retried")
    if not _can_retry(session):
        raise WrongUseError(
            f"session {session.id} is {session.shown_state} under {session.agent},"
            " so there is nothing to retry",
            hint=f"Hand over anew: {continue_command(handoff.to_agent, session.id)}",
        )
    if living is not None:
        again = replace(handoff, step=Step.SPAWNED, is_cancelled=False)
        retried = Outcome((work.HandoffRetried(handoff.id),))
        ready = session.state is State.READY
        return retried.then(
            Outcome((), handoffs.find_delivery(replace(session, handoff=again), living) if ready else ())
        )
    check_waiting_packet(session, handoff.to_agent, world)
    _check_target(handoff, world, force=asked.force)
    return resume_handoff(session, handoff, world)


def _can_retry(session: Session) -> bool:
    """Return whether the last handoff, which failed or was cancelled, can go on in the current state.

    A successor that lives without its packet can be given it at any prompt, whatever it did meanwhile.
    """
    living, left = session.living_leg, session.retriable
    if left is None or session.handoff is not None:
        return False
    if living is not None:
        return living.id == left.leg and session.state in LIVE
    return session.state in RETRIED_FROM


def resume_handoff(session: Session, handoff: Handoff, world: DecisionContext) -> Outcome:
    """Resume the session's retriable handoff without a leg: from its packet, or by making one."""
    step = handoffs.find_step_left(session)
    retried = Outcome((work.HandoffRetried(handoff.id),))
    if step is Step.STOPPED:
        return retried.then(Outcome((), (PublishPacket(handoff.id),)))
    again = replace(handoff, step=step, is_cancelled=False)
    return retried.then(handoffs.start_successor(session, again, world, packet=handoff.packet))


def close(session: Session, asked: CloseAsked, world: DecisionContext) -> Outcome:
    """Record the verdict on a finished handoff, and its evidence; unless it is completed, roll it back.

    Of one that is to be completed and has an unmet criterion only the evidence is recorded, unless it shall
    be completed `anyway`. Raises WrongUseError for one that was not made, or was judged before.
    """
    handoff = next((one for one in session.done if one.id == asked.handoff), None)
    confirmed: tuple[Body, ...] = ()
    current = session.handoff
    if current is not None and current.id == asked.handoff:
        if current.step is not Step.DELIVERED or session.state not in LIVE:
            raise WrongUseError(
                f"handoff {asked.handoff} is under way", hint="See: agent-relay handoff cancel --help"
            )
        handoff, confirmed = current, (work.HandoffConfirmed(current.id, current.leg),)
    if handoff is None:
        raise _refuse_over(session, asked.handoff, asked.verdict)
    if handoff.id in session.closed:
        raise WrongUseError(f"handoff {handoff.id} was judged already", hint=_see(handoff.id))
    checked = list_evidence(handoff, asked)
    if asked.verdict == "completed" and list_unmet(checked) and not asked.anyway:
        return Outcome(checked)
    after = replace(session, handoff=None) if confirmed else session
    rolled, why_not = _roll_back(after, handoff, asked, world, unmet=list_unmet(checked))
    blockers = list_blockers(handoff.id, asked.report)
    closed = build_closed(asked, (why_not,) if why_not else ())
    return Outcome((*confirmed, *checked, *blockers, closed)).then(rolled)


def build_closed(asked: CloseAsked, skipped: tuple[str, ...]) -> work.HandoffClosed:
    """Return the event of the verdict; `skipped` is why its rollback agent does not take over."""
    report = asked.report
    return work.HandoffClosed(
        asked.handoff,
        asked.verdict,
        asked.note,
        skipped,
        asked.by,
        report.deliverables,
        report.completed,
        report.incomplete,
        report.questions,
        report.suggested_next,
        asked.asker.user,
        asked.asker.via,
    )


def list_blockers(handoff: str, report: HandoffReport) -> tuple[work.BlockerNamed, ...]:
    """Return the events of the report's blockers."""
    return tuple(work.BlockerNamed(handoff, one.kind, one.text, one.requires) for one in report.blockers)


def list_evidence(handoff: Handoff, asked: CloseAsked) -> tuple[work.CriterionChecked, ...]:
    """Return what is known of the handoff's criteria, each once: what relay ran counts before words.

    A report names a criterion by its words or its number; other words are a criterion of its own. Raises
    WrongUseError for a number that no criterion has.
    """
    known = handoff.terms.all_criteria
    found = {one.criterion: one for one in asked.checked}
    for said in asked.report.criteria:
        criterion = _find_criterion(known, said.criterion)
        if criterion not in found or found[criterion].verdict == CriterionVerdict.UNCHECKED:
            verdict = CriterionVerdict.MET if said.met else CriterionVerdict.UNMET
            found[criterion] = work.CriterionChecked(handoff.id, criterion, verdict, said.how, asked.by)
    return tuple(found.values())


def _find_criterion(known: Sequence[str], said: str) -> str:
    if said in known or not (said.isascii() and said.isdecimal()):
        return said
    number = int(said[:_DIGITS])
    if not 0 < number <= len(known):
        raise WrongUseError(
            f"there is no criterion {said[:20]}",
            hint=f"It has {len(known)}: name one by its words or its number",
        )
    return known[number - 1]


def list_unmet(checked: Sequence[work.CriterionChecked]) -> tuple[str, ...]:
    """Return the criteria that were found unmet."""
    return tuple(one.criterion for one in checked if one.verdict == CriterionVerdict.UNMET)


def _roll_back(
    session: Session,
    handoff: Handoff,
    asked: CloseAsked,
    world: DecisionContext,
    *,
    unmet: tuple[str, ...],
) -> tuple[Outcome, str]:
    """Return the handoff to the rollback agent, and why there is none although one was named."""
    name = handoff.terms.rollback
    if asked.verdict == "completed" or not name:
        return Outcome(), ""
    if session.handoff is not None or session.state is State.STOPPING:
        return Outcome(), f"{name}: the session is {session.state}"
    if session.leg is None or session.leg.id != handoff.leg:
        return Outcome(), f"{name}: the session has gone on under {session.agent}"
    found = handoffs.try_roll_back(session, handoff, world, why=_tell_failure(handoff, asked, unmet))
    return (Outcome(), found) if isinstance(found, str) else (found, "")


def _tell_failure(handoff: Handoff, asked: CloseAsked, unmet: tuple[str, ...]) -> str:
    """Return what the rollback agent is told of the failure: why, how far the work came, what it needs."""
    report = asked.report
    parts = {
        "done": report.completed,
        "not done": report.incomplete,
        "exists now": report.deliverables,
        "not met": unmet,
        "in the way": tuple(
            f"{one.text} (needs {one.requires})" if one.requires else one.text for one in report.blockers
        ),
        "open questions": report.questions,
        "suggested next": (report.suggested_next,) if report.suggested_next else (),
    }
    told = [f"{name}: {', '.join(words)}" for name, words in parts.items() if words]
    return "; ".join([asked.note or f"{handoff.to_agent} did not succeed", *told])


def _check_target(handoff: Handoff, world: DecisionContext, *, force: bool) -> None:
    known, name = world.availability, handoff.to_agent
    choice = (world.wake(name) if force else world).choose((name,), needs=handoff.terms.needs)
    if not choice.successor:
        # Nothing but its rest can be overridden.
        rests = not force and name in known and known[name].resting
        again = (
            f"{retry_command(handoff.id, '--yes')} tries all the same" if rests else "See: agent-relay doctor"
        )
        raise NobodyAvailableError(f"cannot resume the handoff ({choice.skipped[0]})", hint=again)


def _refuse_over(session: Session, handoff: str, verb: str) -> RelayError:
    """Build the error that says why `verb` does not apply to the handoff; suggest a retry if possible."""
    left = session.retriable
    again = f"Go on with it: {retry_command(left.id)}" if left is not None and _can_retry(session) else ""
    if left is not None and left.id == handoff:
        what = "cancelled" if left.is_cancelled else "failed or left unfinished"
        return WrongUseError(f"handoff {handoff} was {what} already", hint=again or _see(handoff))
    if left is not None and again and verb == "retried":
        return WrongUseError(
            f"handoff {handoff} was followed by handoff {left.id}, so it cannot be retried", hint=again
        )
    if any(done.id == handoff for done in session.done):
        return WrongUseError(f"handoff {handoff} has been made, so it cannot be {verb}", hint=_see(handoff))
    return WrongUseError(
        f"handoff {handoff} is over and the session has gone on, so it cannot be {verb}", hint=_see(handoff)
    )


def _see(handoff: str) -> str:
    return f"See: agent-relay handoff show {handoff}"


def build_handoff_plan(
    session: Session, world: DecisionContext, *, needs: Sequence[str] = ()
) -> dict[str, object]:
    """Return to whom a handoff would go now, and why not to the others; change nothing.

    Keys: session, state, agent, successor (empty for nobody), earliest (ISO 8601 or empty), needs, handoff
    (the one under way, or empty), and agents: one row each with agent, place (from 1), verdict (`at work`,
    `last` for the one that was if none is, `next`, `later` or `skipped`) and why. `assumed` is whether the
    agent did not name `earliest` itself.
    """
    world = handoffs.note_refused(session, world)
    needs = tuple(needs) or inherit_terms(session).needs
    known, now, zone = world.availability, world.now, world.zone
    choice = world.choose(session.roster, current=session.agent, needs=needs)
    rows, is_found = [], False
    for place, name in enumerate(session.roster, start=1):
        why = explain_unavailable(known.get(name), now=now, zone=zone, needs=needs)
        if name == session.agent and session.living_leg is not None:
            verdict, why = "at work", ""
        elif name == session.agent:
            verdict, why = "last", why or "it worked last; no agent is at work now"
        elif why:
            verdict = "skipped"
        elif is_found:
            verdict, why = "later", f"{choice.successor} comes before it"
        else:
            verdict, is_found = "next", True
        rows.append({"agent": name, "place": place, "verdict": verdict, "why": why})
    return {
        "session": session.id,
        "state": session.shown_state.value,
        "agent": session.agent,
        "successor": choice.successor,
        "earliest": choice.earliest.isoformat() if choice.earliest else "",
        "assumed": choice.assumed,
        "needs": list(needs),
        "handoff": session.handoff.id if session.handoff is not None else "",
        "agents": rows,
    }
