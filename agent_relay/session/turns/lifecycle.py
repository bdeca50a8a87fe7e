"""Decide how a headless turn begins, and what the end of an agent's process means."""

from agent_relay.domain.effects import PublishPacket
from agent_relay.domain.errors import AtWorkError
from agent_relay.domain.events import session as events
from agent_relay.domain.events import work
from agent_relay.domain.inputs import LegGone, TurnAsked
from agent_relay.domain.session import Handoff, Leg, Session, Step, Turn
from agent_relay.domain.state import LIVE, State
from agent_relay.domain.values import replace
from agent_relay.session import handoffs
from agent_relay.session.decision import NOTHING, DecisionContext, Outcome
from agent_relay.session.limits.usage_limits import relieve_turn
from agent_relay.session.requests import begin_at_end, find_begun
from agent_relay.session.transitions import is_ended_by_budget
from agent_relay.session.views.event_lines import name_end


def take_turn(session: Session, asked: TurnAsked, world: DecisionContext) -> Outcome:
    """Journal the turn and start its first leg, or rest.

    Raises AtWorkError while something else is under way.
    """
    check_free(session)
    begun = work.TurnBegun(
        asked.agent, asked.prompt, asked.most, asked.ends, asked.seat, asked.others, asked.message
    )
    turn = Turn(asked.agent, asked.prompt, asked.most, asked.ends, seat=asked.seat, others=asked.others)
    after = replace(session, turn=turn, state=State.STARTING, handoff=None, tried=())
    return Outcome((begun,)).then(begin_turn(after, turn, world))


def check_free(session: Session) -> None:
    """Raise AtWorkError while something is under way that a turn would disturb."""
    is_busy = session.living_leg is not None or session.handoff is not None or session.open_turn is not None
    if is_busy or session.state in {State.STOPPING, State.LIMITED, State.HANDING_OFF}:
        raise AtWorkError(
            f"session {session.id} is at work", hint="Wait for its end, or leave out --continue"
        )


def begin_turn(session: Session, turn: Turn, world: DecisionContext) -> Outcome:
    """Start the first leg of a turn: with the agent that was asked, or with the next one while that rests.

    An agent that is asked by name is believed to be signed in.
    """
    known = {
        name: replace(state, signed_in=state.signed_in or name == turn.agent)
        for name, state in world.availability.items()
    }
    order = tuple(name for name in dict.fromkeys((turn.agent, *session.roster)) if name not in turn.others)
    choice = replace(world, availability=known).choose(order, needs=(handoffs.HEADLESS,))
    if not choice.successor:
        return handoffs.rest(session, "no agent is available for this turn", choice)
    # Who is asked in a chat is told in its prompt what the others said: it needs no packet.
    is_told = bool(turn.seat) and choice.successor == turn.agent
    asked = f"{turn.agent}: "
    instead = next((why.removeprefix(asked) for why in choice.skipped if why.startswith(asked)), "")
    if session.leg is None:
        return handoffs.begin_leg(session, choice.successor, world, instead=instead)
    if session.agent == choice.successor or is_told:
        relief = NOTHING if turn.seat else relieve_turn(session, world)
        return (
            relief
            if relief.bodies
            else handoffs.begin_leg(session, choice.successor, world, resumes=True, instead=instead)
        )
    is_asked = choice.successor == turn.agent
    why = "asked for" if is_asked else "; ".join(choice.skipped)
    reason = "manual" if is_asked else "rate_limit"
    return handoffs.begin_handoff(session, choice.successor, reason, world, why=why, skipped=choice.skipped)


def headless_spawned(session: Session, leg: Leg, started: events.LegStarted) -> Outcome:
    """Journal that the leg lives; its packet is delivered, because it got the text to read at its start."""
    handoff = session.handoff
    if handoff is None or handoff.leg != leg.id:
        return Outcome((started,))
    return Outcome((started, work.PacketDelivered(handoff.id, leg.id)))


def headless_prompted(session: Session, leg: Leg) -> Outcome:
    """Journal that the leg works on its turn, and confirm its handoff."""
    if session.state not in LIVE:
        return Outcome((events.LegPrompted(leg.id),))
    return Outcome((events.LegBusy(leg.id), *_confirm(session, leg)))


def turn_over(
    session: Session, leg: Leg, ended: events.LegEnded, gone: LegGone, world: DecisionContext
) -> Outcome:
    """Journal the end of a headless leg and its turn; end the session, or wait for the next prompt.

    If the agent asked for a handoff, that begins instead.
    """
    turn = session.turn
    if turn is None or session.state is State.RESTING:
        end = (events.SessionEnded(session.why),) if turn is not None and turn.ends else ()
        return Outcome((*end_resting(session), ended, *end))
    if session.state is State.STOPPING:
        stopped = work.TurnEnded(leg.id, "stopped", session.why)
        return Outcome((stopped, ended, events.SessionEnded(session.why)))
    is_done = is_turn_done(session, gone)
    confirmed = Outcome(_confirm(session, leg))
    asked = begin_at_end(session, leg, ended, world, is_done=is_done)
    if find_begun(asked) is not None:
        # The turn is not over: the agent that was asked for goes on with it.
        return confirmed.then(asked)
    why = "" if is_done else gone.why or f"{leg.agent} {name_end(ended.how)} before its turn was over"
    told = work.TurnEnded(leg.id, "done" if is_done else "failed", why, gone.said, gone.refused)
    over = Outcome((told, ended, wait_or_end(turn, why)))
    return confirmed.then(asked).then(over)


def end_resting(session: Session) -> tuple[events.Body, ...]:
    """Return the end of a turn that no agent can go on with, if a crash kept it out of the journal."""
    turn, leg = session.open_turn, session.leg
    if turn is None or not turn.ends:
        return ()
    return (work.TurnEnded(leg.id if leg is not None else "", "resting", session.why),)


def is_turn_done(session: Session, gone: LegGone) -> bool:
    """Return whether the agent reported that its turn ended successfully."""
    return gone.is_done or (session.turn is not None and session.turn.outcome == "done")


def wait_or_end(turn: Turn, why: str) -> events.Body:
    """Return the event after the end of a turn's leg: the session waits, or ends."""
    return events.SessionEnded(why) if turn.ends or turn.outcome == "stopped" else work.SessionWaits(why)


def _confirm(session: Session, leg: Leg) -> tuple[events.Body, ...]:
    """Return the events that confirm the handoff to this leg; nothing if none is under way."""
    handoff = session.handoff
    if handoff is None or handoff.leg != leg.id or handoff.is_cancelled:
        return ()
    delivered = () if handoff.step is Step.DELIVERED else (work.PacketDelivered(handoff.id, leg.id),)
    return (*delivered, work.HandoffConfirmed(handoff.id, leg.id))


_LET_GO = frozenset({0, 130})
"""The statuses of an agent that a person had leave: by its own command, or by an interrupt."""


def leg_gone(session: Session, gone: LegGone, world: DecisionContext) -> Outcome:  # noqa: PLR0911 - one arm a case
    """Decide what follows the end of the newest leg: the next step of a handoff, or the session's end."""
    leg = session.living_leg
    if leg is None or leg.id != gone.leg:
        return NOTHING
    handoff = _find_unconfirmed(session, leg)
    ended = events.LegEnded(
        leg.id, "stopped" if session.state is State.HANDING_OFF else gone.how, gone.status
    )
    if handoff is not None and handoff.step is Step.BEGUN:
        stopped = work.PredecessorStopped(handoff.id, leg.id)
        return Outcome((ended, stopped), (PublishPacket(handoff.id),))
    if handoff is not None and handoff.leg == leg.id and handoff.is_cancelled:
        return Outcome((ended,)).then(handoffs.rest_cancelled(handoff))
    if handoff is not None and handoff.leg == leg.id and is_failure(session, leg, handoff, gone):
        return Outcome((ended,)).then(successor_failed(session, handoff, ended, gone.why, world))
    if leg.headless:
        return turn_over(session, leg, ended, gone, world)
    if session.state is State.RESTING:
        return Outcome((ended,))
    is_clean = ended.how == "exited" and ended.status == 0
    asked = NOTHING if is_clean else begin_at_end(session, leg, ended, world, is_done=False)
    if find_begun(asked) is not None:
        return asked
    spent = session.why if session.state is State.STOPPING and is_ended_by_budget(session) else ""
    end = events.SessionEnded(spent or gone.why or f"{leg.agent} {name_end(ended.how)}")
    return asked.then(Outcome((ended, end)))


def _find_unconfirmed(session: Session, leg: Leg) -> Handoff | None:
    """Return the handoff under way, or the one that began `leg` and whose packet was never delivered.

    The second only if the leg took no prompt: the next agent must still get that packet, because nothing else
    has the user's prompt.
    """
    left = session.retriable
    if session.handoff is not None or left is None or left.leg != leg.id or left.is_cancelled:
        return session.handoff
    return None if leg.was_busy or session.state not in LIVE else left


def is_failure(session: Session, leg: Leg, handoff: Handoff, gone: LegGone) -> bool:
    """Return whether this end of a successor is a failure to take over.

    It is none if a person let a ready one leave, unless a rollback agent is named and the exit was not clean.
    """
    if leg.headless and (session.state is State.STOPPING or is_turn_done(session, gone)):
        return False
    was_let_go = gone.how == "exited" and gone.status in _LET_GO
    return not leg.was_ready or not was_let_go or _rolls_back(handoff, gone)


def _rolls_back(handoff: Handoff, gone: LegGone) -> bool:
    """Return whether a rollback agent is named and the successor's end was no clean exit."""
    return bool(handoff.terms.rollback) and (gone.how != "exited" or gone.status != 0)


def successor_failed(
    session: Session, handoff: Handoff, ended: events.LegEnded, why: str, world: DecisionContext
) -> Outcome:
    """Replace a successor that ended before it worked on its packet.

    `ended` is that end, journalled before the outcome of this.
    """
    failed = work.HandoffFailed(handoff.id, handoff.step, why or _tell_end(session, handoff))
    tried = (*session.tried, handoff.to_agent)
    legs = tuple(
        replace(leg, how=ended.how, status=ended.status) if leg.id == ended.leg else leg
        for leg in session.legs
    )
    after = replace(session, handoff=None, retriable=handoff, tried=tried, legs=legs, state=State.LIMITED)
    return Outcome((failed,)).then(handoffs.replace_agent(after, world, reason="failure", why=failed.why))


def _tell_end(session: Session, handoff: Handoff) -> str:
    leg = session.leg
    before = "it was given its packet" if leg is not None and leg.was_ready else "it was ready"
    return f"{handoff.to_agent} ended before {before}"
